import { RawJson, stringify } from '../../kernel/raw-json';

/** What writers throw at a value that is not exactly what its type promises. It says nothing: who catches it knows. */
const NOT_PLAIN = new Error('a value cannot be written as text');

/** @throws always */
function refused(): never {
  throw NOT_PLAIN;
}

/** What JSON may write with an escape: all but the characters listed. Of halves of pairs only lone ones have one. */
const ESCAPED = /[^ !#-[\]-\ud7ff\ue000-\uffff]/;
/** Measured: up to this length looking at each character costs less than the expression does. */
const SHORT = 12;

/** A text's characters as they stand between quotes. */
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

/** Numbers are returned as they are: put into a text they are written as JSON writes them. */
const numbers = {
  int: (value: unknown) => (typeof value === 'number' && (value | 0) === value ? value : refused()),
  int53: (value: unknown) => (Number.isSafeInteger(value) ? value : refused()),
  float: (value: unknown) => (Number.isFinite(value) ? value : refused()),
};

/** Any value, a vendor's own text byte for byte. */
function json(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  // Promises are awaited and functions called by executors.
  if (typeof value === 'function' || typeof (value as { then?: unknown }).then === 'function') return refused();
  return (stringify(value) as string | undefined) ?? refused();
}

/** What compiled functions are given: each writes a value that is not null, or throws. */
export const VALUES = {
  refused,
  string,
  quoted: (value: unknown) => `"${string(value)}"`,
  ...numbers,
  boolean: (value: unknown) => (value === true ? 'true' : value === false ? 'false' : refused()),
  json,
  /** The name of an enum's value, in quotes. */
  named: (names: ReadonlyMap<unknown, string>, value: unknown) => names.get(value) ?? refused(),
};
