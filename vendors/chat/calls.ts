import { z } from 'zod';
import { OutcomeUnknown } from '../../kernel/job';
import { bodyAs, bodyOf } from '../http/body';
import type { HttpAnswer, HttpClient, HttpRequest } from '../http/port';
import { ChatRefused } from './port';

/** Most characters of a platform's message that are passed on. */
const MESSAGE = 300;
/** Longest wait for a platform's chat: somebody waits for the answer. */
const CALL_MS = 5_000;

/** Bodies of refusals: `{message}` of Twitch, Kick and Trovo, `{error: {message}}` of Google. */
const Refusal = z.object({
  message: z.string().nullish(),
  error: z
    .union([
      z.string(),
      z.object({
        message: z.string().nullish(),
        errors: z.array(z.object({ reason: z.string().nullish() })).nullish(),
      }),
    ])
    .nullish(),
});

/**
 * A call that changes something on a platform: sent once, and never followed by another.
 * @throws as `ChatVendor`
 */
export async function chatCall(
  client: HttpClient,
  request: Omit<HttpRequest, 'body' | 'repeatable'> & { json?: object },
): Promise<HttpAnswer> {
  const { json, headers, ...rest } = request;
  const answer = await client.call({
    ...rest,
    deadline_ms: CALL_MS,
    repeatable: false,
    repeat_limited: false,
    headers: { accept: 'application/json', ...(json && { 'content-type': 'application/json' }), ...headers },
    ...(json && { body: JSON.stringify(json) }),
  });
  const { status } = answer;
  if (status >= 200 && status < 300) return answer;
  const host = new URL(request.url).hostname;
  if (status >= 500 || status < 400) throw new OutcomeUnknown(`${host} answered ${status}`);
  const { text, reason } = refusalOf(answer);
  throw new ChatRefused(status, text ?? `${host} answered ${status}`, reason);
}

function refusalOf(answer: HttpAnswer): { text: string | null; reason: string | null } {
  const { message, error } = bodyAs(answer, Refusal) ?? {};
  const google = typeof error === 'string' ? null : error;
  const text = message ?? (typeof error === 'string' ? error : google?.message) ?? '';
  return { text: platformText(text), reason: google?.errors?.[0]?.reason ?? null };
}

/** A platform's message as it is passed on; null for an empty one. */
export const platformText = (text: string | null | undefined): string | null => text?.trim().slice(0, MESSAGE) || null;

/** Text of a platform; null for an empty one, and without NUL. */
export const profileText = (text: string | null | undefined): string | null =>
  text?.replaceAll('\0', '').trim().slice(0, 2_000) || null;

/** The end of the year 9999. */
const LAST_MS = 253_402_300_799_999;

/** Time of a platform, a text or Unix seconds, as RFC 3339; null for any other value. */
export function profileTime(time: string | number | null | undefined): string | null {
  const millis = typeof time === 'number' ? time * 1000 : Date.parse(time ?? '');
  return millis > 0 && millis <= LAST_MS ? new Date(millis).toISOString() : null;
}

/** Body of a read. Throws as `HttpClient.ask`. */
export async function chatRead<T>(client: HttpClient, request: HttpRequest, shape: z.ZodType<T>): Promise<T> {
  return bodyOf(await client.ask({ deadline_ms: CALL_MS, ...request }), shape, String(request.url));
}
