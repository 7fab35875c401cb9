import { RawJson, stringify } from '../../../lib/json/raw-json';

/**
 * Thrown by writers for a value that does not match its type exactly. Without details, because its catch needs none.
 */
const NOT_PLAIN = new Error('a value cannot be written as text');

/** @throws always */
function refused(): never {
  throw NOT_PLAIN;
}

/** Characters that may need an escape in JSON, including surrogates, of which only lone ones do. */
const ESCAPED = /[^ !#-[\]-\ud7ff\ue000-\uffff]/;
/** Measured: up to this length a loop over the characters costs less than the expression. */
const SHORT = 12;

/** JSON of a text without its quotes. */
function string(value: unknown): string {
  if (typeof value !== 'string') return refused();
  const { length } = value;
  if (length > SHORT) return ESCAPED.test(value) ? JSON.stringify(value).slice(1, -1) : value;
  for (let i = 0; i < length; i += 1) {
    const c = value.charCodeAt(i);
    if (c < 32 || c === 34 || c === 92 || (c >= 0xd800 && c <= 0xdfff)) return JSON.stringify(value).slice(1, -1);
  }
  return value;
}

/** Numbers are returned unchanged, because concatenation writes them as JSON does. */
const numbers = {
  int: (value: unknown) => (typeof value === 'number' && (value | 0) === value ? value : refused()),
  int53: (value: unknown) => (Number.isSafeInteger(value) ? value : refused()),
  float: (value: unknown) => (Number.isFinite(value) ? value : refused()),
};

/** JSON of any value; a vendor's own text byte for byte. */
function json(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  // Refuses promises and functions, which executors await and call.
  if (typeof value === 'function' || typeof (value as { then?: unknown }).then === 'function') return refused();
  return (stringify(value) as string | undefined) ?? refused();
}

/** Thrown when a text exceeds its bound. */
export const TOO_LONG = new Error('the text is too long');
const tooLong = (): never => {
  throw TOO_LONG;
};

/** Writers for compiled functions: each returns the text of a non-null value, or throws. */
export const VALUES = {
  refused,
  tooLong,
  string,
  quoted: (value: unknown) => `"${string(value)}"`,
  ...numbers,
  boolean: (value: unknown) => (value === true ? 'true' : value === false ? 'false' : refused()),
  json,
  /** The name of an enum's value, in quotes. */
  named: (names: ReadonlyMap<unknown, string>, value: unknown) => names.get(value) ?? refused(),
};
