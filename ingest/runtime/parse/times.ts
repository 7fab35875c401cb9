import { LAST_MS, MAX_FRACTION_DIGITS, parseTime, readTime } from '../../../lib/time/vendor-times';

/** Milliseconds that a vendor's clock may run ahead of ours before its time is rejected. */
const FUTURE_MS = 5 * 60_000;
/** Before any of the vendors had a product. */
const EARLIEST_MS = Date.UTC(2005, 0, 1);

/**
 * Whether one RFC 3339 time is before another, down to the last digit: vendors write nanoseconds. False when either is
 * not a time.
 */
export function isBefore(one: unknown, other: unknown): boolean {
  if (typeof one !== 'string' || typeof other !== 'string') return false;
  const [a, b] = [parseTime(one), parseTime(other)];
  if (a === null || b === null) return false;
  return a === b ? fraction(one) < fraction(other) : a < b;
}

/**
 * Whether one RFC 3339 time may be before another: also when both are equal at the coarser precision. False when either
 * is not a time.
 */
export function mayBeBefore(one: unknown, other: unknown): boolean {
  if (typeof one !== 'string' || typeof other !== 'string') return false;
  const [a, b] = [parseTime(one), parseTime(other)];
  if (a === null || b === null) return false;
  const digits = Math.min(fractionOf(one).length, fractionOf(other).length);
  const unit_ms = 10 ** Math.max(0, 3 - digits);
  const apart = Math.floor(a / unit_ms) - Math.floor(b / unit_ms);
  return apart === 0 ? fraction(one).slice(0, digits) <= fraction(other).slice(0, digits) : apart < 0;
}

/** The fraction of a second in a text that is a time; its dot is the only one. */
const fractionOf = (text: string): string => /\.(\d+)/.exec(text)?.[1] ?? '';
const fraction = (text: string): string => fractionOf(text).padEnd(MAX_FRACTION_DIGITS, '0');

/** RFC 3339 UTC of a member that holds a time; null when it does not. */
export function readInstant(value: unknown): string | null {
  const time = readTime(value);
  return time === null ? null : instantAt(time);
}

/** RFC 3339 UTC; null beyond what it can write. */
export const instantAt = (ms: number): string | null => (Math.abs(ms) <= LAST_MS ? new Date(ms).toISOString() : null);

/**
 * Time of an event, RFC 3339 UTC: the first plausible candidate, else the time of receipt. The vendor's own time is
 * preferred, so that a re-delivery has the same one (spec rulings c44).
 */
export function eventTime(received_at: number, ...candidates: readonly unknown[]): string {
  for (const candidate of candidates) {
    const time = readTime(candidate);
    if (time !== null && time >= EARLIEST_MS && time <= received_at + FUTURE_MS) return new Date(time).toISOString();
  }
  return new Date(received_at).toISOString();
}

/** The platforms' own bound of a timeout, in seconds: a longer one results from differing clocks. */
const LONGEST_TIMEOUT_S = 1_209_600;

/**
 * End of a timeout, and its length where plausible, from the time of the act, else from that of its message. An end
 * before the act is no end.
 */
export function until(ends_at: unknown, acted_at: unknown, ...sent_at: readonly unknown[]): Until {
  const [end, begin] = [readTime(ends_at), readTime(acted_at)];
  if (end === null || (begin !== null && end < begin)) return { ends_at: null, duration_secs: null };
  const from = [begin, ...sent_at.map(readTime)].find((time) => time !== null) ?? end;
  const seconds = Math.round((end - from) / 1000);
  const believable = seconds >= 1 && seconds <= LONGEST_TIMEOUT_S;
  return { ends_at: instantAt(end), duration_secs: believable ? seconds : null };
}

interface Until {
  ends_at: string | null;
  duration_secs: number | null;
}
