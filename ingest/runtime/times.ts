/**
 * Vendors' times: 0 to 9 fraction digits, `Z` or an offset, or Unix seconds or milliseconds. They differ even within
 * one vendor.
 */

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:?\d\d)$/;

/** How far a vendor's clock may run ahead of ours before its time is not believed. Unix milliseconds. */
const FUTURE_MS = 5 * 60_000;
/** Before any of the vendors had a product; catches zero times (`0001-01-01T00:00:00Z`, epoch 0). */
const EARLIEST_MS = Date.UTC(2005, 0, 1);

/** Unix milliseconds of an RFC 3339 text; null when it is none, or names a day or minute that does not exist. */
export function parseTime(text: string): number | null {
  const match = RFC3339.exec(text.trim());
  if (!match) return null;
  const [, year, month, day, hour, minute, second] = match.map(Number) as [number, ...number[]];
  if (month! < 1 || month! > 12 || hour! > 23 || minute! > 59 || second! > 60) return null;
  // day 0 of the next month is the last day of this one
  if (day! < 1 || day! > new Date(Date.UTC(year!, month!, 0)).getUTCDate()) return null;
  const milliseconds = Number((match[7] ?? '').padEnd(3, '0').slice(0, 3));
  const utc = Date.UTC(year!, month! - 1, day!, hour!, minute!, second!, milliseconds);
  const zone = match[8]!;
  if (zone === 'Z' || zone === 'z') return utc;
  const digits = zone.slice(1).replace(':', '');
  const offset = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2));
  if (Number(digits.slice(2)) > 59 || offset > 18 * 60) return null;
  return utc - (zone[0] === '-' ? -offset : offset) * 60_000;
}

/**
 * Whether one RFC 3339 time is before another, down to the last of their digits: vendors write nanoseconds. False when
 * either is none.
 */
export function isBefore(one: unknown, other: unknown): boolean {
  if (typeof one !== 'string' || typeof other !== 'string') return false;
  const [a, b] = [parseTime(one), parseTime(other)];
  if (a === null || b === null) return false;
  return a === b ? fraction(one) < fraction(other) : a < b;
}

const fraction = (text: string): string => (RFC3339.exec(text.trim())?.[7] ?? '').padEnd(9, '0');

/** Unix milliseconds of a member that holds a time in any of the vendors' forms; null when it does not. */
export function readTime(value: unknown): number | null {
  if (typeof value === 'string' && !/^\d{9,16}$/.test(value)) return parseTime(value);
  const number = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  if (!Number.isFinite(number) || number <= 0) return null;
  if (number < 1e11) return Math.round(number * 1000);
  return number < 1e14 ? Math.round(number) : Math.round(number / 1000);
}

/**
 * When it happened, RFC 3339 UTC: the first candidate that is a believable time, else when we received it.
 * The vendor's own time is preferred, so that a re-delivery carries the same one (spec rulings c44).
 */
export function eventTime(received_at: number, ...candidates: readonly unknown[]): string {
  for (const candidate of candidates) {
    const time = readTime(candidate);
    if (time !== null && time >= EARLIEST_MS && time <= received_at + FUTURE_MS) return new Date(time).toISOString();
  }
  return new Date(received_at).toISOString();
}
