import type { HttpAnswer } from '../http/port';

/** Wait after a 429 that names no moment. */
const LIMITED_MS = 5_000;

/** Classifies the answer to a subscription that was not made: the limit of calls, with its end, or a refusal. */
export function limitOrRefusal(
  { status, headers, retry_after_ms }: Pick<HttpAnswer, 'status' | 'headers' | 'retry_after_ms'>,
  message: string,
): { kind: 'limited'; until: number } | { kind: 'refused'; status: number; message: string } {
  if (status !== 429 || /cost|subscriptions/i.test(message)) return { kind: 'refused', status, message };
  const reset = Number(headers['ratelimit-reset']) * 1000;
  const until = Number.isFinite(reset) && reset > 0 ? reset : Date.now() + (retry_after_ms ?? LIMITED_MS);
  return { kind: 'limited', until };
}

/** State of a bucket of calls: the calls left, and when it is full again (Unix milliseconds). */
export interface CallsLeft {
  calls: number;
  full_at: number;
}

/** Reads the bucket's state of an answer; null when it has none. */
export function callsLeft({ headers }: Pick<HttpAnswer, 'headers'>): CallsLeft | null {
  const [calls, full_at] = [Number(headers['ratelimit-remaining'] ?? NaN), Number(headers['ratelimit-reset']) * 1000];
  return Number.isFinite(calls) && Number.isFinite(full_at) ? { calls, full_at } : null;
}
