import { RawJson, stringify } from '../../../lib/json/raw-json';
import { exactMicros } from '../../../lib/time/instants';

export type ExportRow = Record<string, unknown>;

/** Kind of the values of a column; each may be null. Times are instants with microseconds. */
export type ColumnKind = 'text' | 'integer' | 'number' | 'flag' | 'time';

export interface Column {
  name: string;
  kind: ColumnKind;
}

/** Columns of one kind. */
export const columns = (kind: ColumnKind, ...names: string[]): Column[] => names.map((name) => ({ name, kind }));

/** Value of a column in the typed formats; times in microseconds since 1970, objects as JSON text. */
export function typedValue({ name, kind }: Column, row: ExportRow): string | number | boolean | null {
  const value = row[name] ?? null;
  if (value === null) return null;
  if (kind === 'time') return exactMicros(String(value)) ?? microsOf(String(value));
  if (kind === 'integer' || kind === 'number') return Number(value);
  if (kind === 'flag') return value === true;
  if (value instanceof RawJson) return value.text;
  return typeof value === 'object' ? stringify(value) : String(value as string | number);
}

/** Null where the text is no time. */
function microsOf(text: string): number | null {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : ms * 1000;
}
