/**
 * Vendors' times: 0 to 9 fraction digits, `Z` or an offset, or Unix seconds or milliseconds. They differ even within
 * one vendor.
 */

/** Milliseconds that a vendor's clock may run ahead of ours before its time is rejected. */
const FUTURE_MS = 5 * 60_000;
/** Before any of the vendors had a product; catches zero times (`0001-01-01T00:00:00Z`, epoch 0). */
const EARLIEST_MS = Date.UTC(2005, 0, 1);
/** The last instant in RFC 3339. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const ZERO = 48;
const DASH = 45;
const PLUS = 43;
const DOT = 46;
const COLON = 58;
const SPACE = 32;
/** Bit that makes an ASCII letter lower case. */
const SMALL = 32;
const SMALL_T = 116;
const SMALL_Z = 122;
const MAX_FRACTION_DIGITS = 9;

/**
 * Unix milliseconds of an RFC 3339 text; null for another text, or a day or minute that does not exist. Parsed digit by
 * digit, because every message has a time, and a regular expression makes a substring for each number.
 */
export function parseTime(given: string): number | null {
  const text = given.trim();
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2);
  const month = twoDigits(text, 5);
  const day = twoDigits(text, 8);
  const hour = twoDigits(text, 11);
  const minute = twoDigits(text, 14);
  const second = twoDigits(text, 17);
  if (text.charCodeAt(4) !== DASH || text.charCodeAt(7) !== DASH) return null;
  if (text.charCodeAt(13) !== COLON || text.charCodeAt(16) !== COLON) return null;
  const between = text.charCodeAt(10);
  if (between !== SPACE && (between | SMALL) !== SMALL_T) return null;
  // NaN fails every comparison, so that non-numbers are rejected here.
  if (!(year >= 0 && month >= 1 && month <= 12 && hour <= 23 && minute <= 59 && second <= 60)) return null;
  if (!(day >= 1 && day <= daysOf(year, month))) return null;
  let at = 19;
  let milliseconds = 0;
  if (text.charCodeAt(at) === DOT) {
    const from = at + 1;
    let worth = 100;
    for (at = from; isDigit(text.charCodeAt(at)); at += 1) {
      milliseconds += (text.charCodeAt(at) - ZERO) * worth;
      worth = worth === 1 ? 0 : worth / 10;
    }
    if (at === from || at - from > MAX_FRACTION_DIGITS) return null;
  }
  const ahead_minutes = zoneAt(text, at);
  if (ahead_minutes === null) return null;
  const time = Date.UTC(year, month - 1, day, hour, minute, second, milliseconds) - ahead_minutes * 60_000;
  return time <= LAST_MS ? time : null;
}

/**
 * Minutes by which the zone is ahead of UTC, which must be all of the text from `at` on; null when it is not a zone.
 */
function zoneAt(text: string, at: number): number | null {
  const sign = text.charCodeAt(at);
  if ((sign | SMALL) === SMALL_Z) return text.length === at + 1 ? 0 : null;
  if (sign !== PLUS && sign !== DASH) return null;
  const colon = text.charCodeAt(at + 3) === COLON ? 1 : 0;
  if (text.length !== at + 5 + colon) return null;
  const minutes = twoDigits(text, at + 3 + colon);
  const offset = twoDigits(text, at + 1) * 60 + minutes;
  if (!(minutes <= 59 && offset <= 18 * 60)) return null;
  return sign === DASH ? -offset : offset;
}

const isDigit = (code: number): boolean => code >= ZERO && code <= ZERO + 9;

/** NaN without two digits. */
function twoDigits(text: string, at: number): number {
  const [high, low] = [text.charCodeAt(at), text.charCodeAt(at + 1)];
  return isDigit(high) && isDigit(low) ? (high - ZERO) * 10 + low - ZERO : Number.NaN;
}

function daysOf(year: number, month: number): number {
  if (month !== 2) return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

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

/** Unix milliseconds of a member that holds a time in any of the vendors' forms; null when it does not. */
export function readTime(value: unknown): number | null {
  if (typeof value === 'string' && !/^\d{9,16}$/.test(value)) return parseTime(value);
  const number = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  if (!Number.isFinite(number) || number <= 0) return null;
  const ms = number < 1e11 ? number * 1000 : number < 1e14 ? number : number / 1000;
  return ms <= LAST_MS ? Math.round(ms) : null;
}

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

/** End of a timeout, and its length where plausible. */
export function until(ends_at: unknown, from: unknown): { ends_at: string | null; duration_secs: number | null } {
  const [end, begin] = [readTime(ends_at), readTime(from)];
  if (end === null) return { ends_at: null, duration_secs: null };
  const seconds = begin === null ? 0 : Math.round((end - begin) / 1000);
  const believable = seconds >= 1 && seconds <= LONGEST_TIMEOUT_S;
  return { ends_at: instantAt(end), duration_secs: believable ? seconds : null };
}
