import type { z } from 'zod';
import type { HttpAnswer } from './port';

/** The answer's body, where it is JSON of this shape. */
export function bodyAs<T>({ body }: Pick<HttpAnswer, 'body'>, shape: z.ZodType<T>): T | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch {
    return undefined;
  }
  return shape.safeParse(value).data;
}
