import { RawJson, stringify } from '../json/raw-json';

/** First characters by which spreadsheets take a cell for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** A cell of CSV (RFC 4180); objects are JSON text. Numbers keep their sign, texts are no formulas. */
export function csvCell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  const text = value instanceof RawJson ? value.text : typeof value === 'string' ? value : stringify(value);
  const neutral = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(neutral) ? `"${neutral.replaceAll('"', '""')}"` : neutral;
}

/** A line of CSV with its end. */
export const csvLine = (cells: readonly unknown[]): string => `${cells.map(csvCell).join(',')}\r\n`;
