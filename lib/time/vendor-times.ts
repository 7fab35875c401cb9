/**
 * Vendors' times: 0 to 9 fraction digits, `Z` or an offset, or Unix seconds or milliseconds. They differ even within
 * one vendor, and so does a missing time: null, an absent member, an empty text, 0, or a time in the year 1.
 */

/** The last instant in RFC 3339. */
export const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

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
export const MAX_FRACTION_DIGITS = 9;

/**
 * Unix milliseconds of an RFC 3339 text; null for another text, a day or minute that does not exist, and the years 0 to
 * 99, which `Date.UTC` reads as 19xx. Parsed digit by digit, because every message has a time, and a regular expression
 * makes a substring for each number.
 */
export function parseTime(untrimmed: string): number | null {
  const text = untrimmed.trim();
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
  if (!(year >= 100 && month >= 1 && month <= 12 && hour <= 23 && minute <= 59 && second <= 60)) return null;
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

/** Unix milliseconds of a member that holds a time in any of the vendors' forms; null for every spelling of no time. */
export function readTime(value: unknown): number | null {
  const ms = typeof value === 'string' && !/^\d{9,16}$/.test(value) ? parseTime(value) : unixTime(value);
  return ms !== null && ms > 0 ? ms : null;
}

function unixTime(value: unknown): number | null {
  const number = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  const ms = number < 1e11 ? number * 1000 : number < 1e14 ? number : number / 1000;
  return ms <= LAST_MS ? Math.round(ms) : null;
}

/** Whole seconds of a member that holds a duration, as a number or text; null without one, which vendors write as 0. */
export function readSeconds(value: unknown): number | null {
  const seconds = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  return Number.isSafeInteger(seconds) && seconds > 0 ? seconds : null;
}
