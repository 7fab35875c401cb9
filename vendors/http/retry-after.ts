const MAX_MS = 24 * 3_600_000;

/**
 * `Retry-After` in milliseconds from now: seconds, or a date; a day at most. Undefined when it says nothing readable.
 */
export function retryAfterMs(header: string | undefined, now = Date.now()): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_MS);
}
