/** Received bytes to text that every store downstream can keep, and reading it without losing digits. Design §6. */
import { isTooDeep, MAX_DEPTH } from '../../../lib/json/depth';

/** Maximum bytes of a stored copy: the topics accept 2 MiB, of which the envelope and its encryption need a part. */
export const MAX_STORED_BYTES = 2 * 1024 * 1024 - 64 * 1024;

/**
 * Whether the text exceeds {@link MAX_STORED_BYTES}. A character has at most three bytes, so short text is not counted.
 */
export const isTooLarge = (raw: string): boolean =>
  raw.length > MAX_STORED_BYTES / 3 && Buffer.byteLength(raw) > MAX_STORED_BYTES;

const utf8 = new TextDecoder('utf-8');
const ESCAPES = /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^]/g;
const SUSPECT_ESCAPE = /\\u(?:0000|[dD][89a-fA-F])/;
const LONE = /^\\u(?:0000|[dD][89a-fA-F])/;

/** Invalid UTF-8 and NUL bytes become U+FFFD; a byte order mark is dropped. Nothing else changes. */
export function decodeText(bytes: Buffer): string {
  const text = utf8.decode(bytes);
  return text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text;
}

/**
 * Replaces `\u0000` and lone surrogate escapes in JSON text by `\ufffd`, because PostgreSQL stores neither; everything
 * else stays byte for byte.
 */
export function storableJson(text: string): string {
  // Most text has no such escape at all, and searching two letters is cheap.
  if (!text.includes('\\u') || !SUSPECT_ESCAPE.test(text)) return text;
  // pairs and other escapes are matched first, so that `\\u0000` (a backslash, then letters) and whole pairs stay
  return text.replace(ESCAPES, (escape) => (escape.length === 6 && LONE.test(escape) ? '\\ufffd' : escape));
}

export type JsonReading = { ok: true; value: unknown } | { ok: false; reason: 'bad_json' | 'too_deep'; detail: string };

/**
 * Parses JSON for reading single members. Integers of 16 digits and more come as strings of their digits,
 * since `JSON.parse` rounds ids beyond 2^53.
 */
export function readJson(text: string): JsonReading {
  if (isTooDeep(text)) return { ok: false, reason: 'too_deep', detail: `nested deeper than ${MAX_DEPTH}` };
  try {
    const value: unknown = JSON.parse(text);
    return { ok: true, value: holdsLongNumber(text) ? JSON.parse(quoteLongIntegers(text)) : value };
  } catch (error) {
    return { ok: false, reason: 'bad_json', detail: unquoted((error as Error).message) };
  }
}

/** Digits from which on `JSON.parse` may round a number. */
const LONG = 16;

/**
 * Whether the text has {@link LONG} consecutive digits: one of them is at a multiple of that length, so that few
 * positions are read.
 */
function holdsLongNumber(text: string): boolean {
  for (let place = LONG - 1; place < text.length; place += LONG) {
    if (!isDigit(text.charCodeAt(place))) continue;
    let first = place;
    while (isDigit(text.charCodeAt(first - 1))) first -= 1;
    let end = place + 1;
    while (isDigit(text.charCodeAt(end))) end += 1;
    if (end - first >= LONG) return true;
  }
  return false;
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

/** Removes the parser's quotation, which may be personal. */
const unquoted = (message: string): string => message.replace(/,? (?:\.\.\.)?"[^]*"(?:\.\.\.)? is not/, ' is not');

/** Only for text that parses: its strings are then closed, which keeps this linear. */
function quoteLongIntegers(text: string): string {
  return text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    /^-?\d{16,}$/.test(token) ? `"${token}"` : token,
  );
}
