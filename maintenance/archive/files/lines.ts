import { stringify } from '../../../lib/json/raw-json';
import { csvLine } from '../../../lib/text/csv';
import type { Column, ExportRow } from './columns';
import type { Encoder } from './encoder';

const linesOf = (head: string, line: (row: ExportRow) => string): Encoder => ({
  head: Buffer.from(head),
  rows: (rows) => Buffer.from(rows.map(line).join('')),
  state: () => null,
  tail: () => Buffer.alloc(0),
});

export const csvEncoder = (columns: readonly Column[]): Encoder =>
  linesOf(csvLine(columns.map(({ name }) => name)), (row) => csvLine(columns.map(({ name }) => row[name] ?? null)));

export const ndjsonEncoder = (columns: readonly Column[]): Encoder =>
  linesOf('', (row) => {
    const shown = Object.fromEntries(columns.map(({ name }) => [name, row[name] ?? null]));
    // JSON has line feeds only between tokens.
    return `${stringify(shown).replace(/[\r\n]/g, ' ')}\n`;
  });
