import { z } from 'zod';
import { bodyAs } from '../http/body';
import { YoutubeRefused } from './port';

const Refusal = z.object({
  error: z.object({ errors: z.array(z.object({ reason: z.string().nullish() })).nullish() }),
});

/** An answer that is no success, with Google's reason. */
export function refusalOf(
  url: string,
  status: number,
  body: Buffer,
  retry_after_ms: number | undefined,
): YoutubeRefused {
  const read = bodyAs({ body }, Refusal);
  return new YoutubeRefused(new URL(url).hostname, status, read?.error.errors?.[0]?.reason ?? null, retry_after_ms);
}
