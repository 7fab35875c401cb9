import type { FileParts } from '../../../engines/blobs/port';
import type { ExportRow } from './columns';

/** Formats of files that can be read back. */
export type ReadFormat = 'parquet' | 'ndjson';

/** Rows of a file of {@link openEncoder}, in batches; times as RFC 3339 with microseconds. */
export const readRows = (format: ReadFormat, file: FileParts): AsyncGenerator<ExportRow[]> =>
  format === 'parquet' ? parquetRows(file) : lineRows(file);

/** Group by group, so that memory is bounded by a group. */
async function* parquetRows(file: FileParts): AsyncGenerator<ExportRow[]> {
  const { parquetMetadataAsync, parquetReadObjects } = await import('hyparquet');
  const parsers = { timestampFromMicroseconds: timeOfMicros };
  const metadata = await parquetMetadataAsync(file, { parsers });
  let first = 0;
  for (const { num_rows } of metadata.row_groups) {
    const next = first + Number(num_rows);
    yield await parquetReadObjects({ file, metadata, rowStart: first, rowEnd: next, parsers });
    first = next;
  }
}

function timeOfMicros(micros: bigint): string {
  const of_ms = ((micros % 1000n) + 1000n) % 1000n;
  const ms = new Date(Number((micros - of_ms) / 1000n)).toISOString();
  return `${ms.slice(0, -1)}${String(of_ms).padStart(3, '0')}Z`;
}

const PART_BYTES = 1 << 20;

async function* lineRows(file: FileParts): AsyncGenerator<ExportRow[]> {
  const text = new TextDecoder();
  let rest = '';
  for (let at = 0; at < file.byteLength; at += PART_BYTES) {
    const part = await file.slice(at, Math.min(file.byteLength, at + PART_BYTES));
    const lines = (rest + text.decode(part, { stream: true })).split('\n');
    rest = lines.pop()!;
    yield lines.map((line) => JSON.parse(line) as ExportRow);
  }
}
