import { z } from 'zod';

const ISO =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?([Zz]|[+ -]\d{2}:?\d{2})?)?$/;

/** What {@link parseInstant} reads, as far as a pattern can say it: not every day that fits it exists. */
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

const WITH_MILLISECONDS = '2026-01-01T00:00:00.000Z'.length;

/**
 * An RFC 3339 UTC instant as answers show it: with milliseconds, or with microseconds where it has them. Fractions of
 * any length would sort as text in another order than as times (`.59Z` after `.595Z`).
 */
export function shownInstant(instant: string): string {
  // Most have their milliseconds already.
  if (instant.length === WITH_MILLISECONDS) return instant;
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
