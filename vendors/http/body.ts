import type { z } from 'zod';
import { isTooDeep } from '../../lib/json/depth';
import { type HttpAnswer, HttpFailed } from './port';

/** The answer's body, where it is JSON of this shape, no deeper than what is written again may be. */
export function bodyAs<T>({ body }: Pick<HttpAnswer, 'body'>, shape: z.ZodType<T>): T | undefined {
  const text = body.toString();
  if (isTooDeep(text)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return shape.safeParse(value).data;
}

/** The answer's body. @throws HttpFailed as for a gateway's error, where it is no JSON of this shape */
export function bodyOf<T>(answer: Pick<HttpAnswer, 'body'>, shape: z.ZodType<T>, base: string): T {
  const value = bodyAs(answer, shape);
  if (value === undefined) throw new HttpFailed(new URL(base).hostname, 502);
  return value;
}
