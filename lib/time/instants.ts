import { z } from 'zod';

const ISO =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?([Zz]|[+ -]\d{2}:?\d{2})?)?$/;

/** Pattern of the texts that {@link parseInstant} reads; a matching day need not exist. */
export const INSTANT_PATTERN = ISO.source;

/**
 * Reads an ISO 8601 date or date-time as an instant: RFC 3339 UTC with microseconds, or null when it is unparsable or
 * impossible (30 February, 25 o'clock). Without an offset it is UTC; a bare date is its midnight. A blank before the
 * offset is a `+` that a query string lost.
 */
export function parseInstant(text: string): string | null {
  const match = ISO.exec(text.trim());
  if (!match) return null;
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', zone = 'Z'] = match;
  const local = Date.UTC(+year!, +month! - 1, +day!, +hour, +minute, +second);
  const same = new Date(local);
  // Date.UTC rolls impossible parts over instead of refusing them, and reads years 0-99 as 19xx.
  if (+year! < 100 || same.toISOString().slice(0, 19) !== `${year}-${month}-${day}T${hour}:${minute}:${second}`)
    return null;
  const at = new Date(local - offsetMinutes(zone) * 60_000);
  const utcYear = at.getUTCFullYear();
  if (!Number.isFinite(at.getTime()) || utcYear < 100 || utcYear > 9999) return null;
  return `${at.toISOString().slice(0, 19)}.${fraction.padEnd(6, '0').slice(0, 6)}Z`;
}

/** An input's instant as {@link parseInstant} reads it, still as text. */
export const readInstant = (name: string) =>
  z
    .string()
    .refine((text) => parseInstant(text) !== null, `${name} must be an ISO 8601 date or date-time`)
    .meta({ pattern: INSTANT_PATTERN });

/** The ends of an input's range as {@link parseInstant} reads them; `reversed` when it ends before it begins. */
export function readRange(input: { from?: string | null | undefined; to?: string | null | undefined }) {
  const from = input.from ? parseInstant(input.from) : null;
  const to = input.to ? parseInstant(input.to) : null;
  return { from, to, reversed: from !== null && to !== null && from > to };
}

const EXACT = /^(?:1[89]|2[01])\d\d-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?Z$/;
const DAY = '2026-01-01'.length;
const SECONDS = '2026-01-01T00:00:00'.length;
/** Times follow each other: the last day is mostly the next one's. */
let last_day = '';
let last_day_ms = Number.NaN;

/**
 * Microseconds since 1970 of an RFC 3339 UTC instant with at most six digits behind its second; null for any other
 * text, for a day that does not exist, and outside of the years 1800 to 2199, whose microseconds a double may not hold.
 */
export function exactMicros(instant: string): number | null {
  if (!EXACT.test(instant)) return null;
  if (!instant.startsWith(last_day) || last_day === '') {
    last_day = instant.slice(0, DAY);
    const ms = Date.parse(last_day);
    last_day_ms = !Number.isNaN(ms) && isDay(ms, last_day) ? ms : Number.NaN;
  }
  if (Number.isNaN(last_day_ms)) return null;
  const seconds =
    3600 * Number(instant.slice(11, 13)) + 60 * Number(instant.slice(14, 16)) + Number(instant.slice(17, 19));
  const fraction = instant.length <= SECONDS + 1 ? 0 : Number(instant.slice(SECONDS + 1, -1).padEnd(6, '0'));
  return (last_day_ms + 1000 * seconds) * 1000 + fraction;
}

// Date.parse rolls some invalid days over into the next month.
const isDay = (ms: number, day: string) => new Date(ms).toISOString().startsWith(day);

const WITHOUT_FRACTION = '2026-01-01T00:00:00Z'.length;
const WITH_MILLISECONDS = '2026-01-01T00:00:00.000Z'.length;
const WITH_MICROSECONDS = '2026-01-01T00:00:00.000000Z'.length;

/**
 * An RFC 3339 UTC instant as answers show it: with milliseconds, or with microseconds where it has them. Fractions of
 * any length would sort as text in another order than as times (`.59Z` after `.595Z`).
 */
export function shownInstant(instant: string): string {
  // Nearly all are of these lengths.
  const { length } = instant;
  if (length === WITH_MILLISECONDS) return instant;
  if (length === WITHOUT_FRACTION) return `${instant.slice(0, -1)}.000Z`;
  if (length === WITH_MICROSECONDS) return instant.endsWith('000Z') ? `${instant.slice(0, -4)}Z` : instant;
  const [seconds, fraction = ''] = instant.slice(0, -1).split('.');
  const digits = fraction.replace(/0+$/, '');
  return `${seconds}.${digits.padEnd(digits.length > 3 ? 6 : 3, '0')}Z`;
}

function offsetMinutes(zone: string): number {
  if (zone === 'Z' || zone === 'z') return 0;
  const digits = zone.slice(1).replace(':', '');
  const [hours, minutes] = [+digits.slice(0, 2), +digits.slice(2)];
  if (hours > 23 || minutes > 59) return Number.NaN;
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}
