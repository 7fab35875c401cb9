import type { Column, ExportRow } from './columns';
import { avroEncoder } from './avro';
import { parquetEncoder } from './parquet';
import { csvEncoder, ndjsonEncoder } from './lines';

/** Writes rows in a file format: head, batches and tail follow each other in the file. */
export interface Encoder {
  head: Buffer;
  /** Rows of a batch. */
  rows(rows: readonly ExportRow[]): Buffer;
  /** State from which a later encoder continues behind the last batch; null where it needs none. */
  state(): string | null;
  tail(): Buffer;
  /** Rows that a batch should have at least, so that the file is read fast. Default 1. */
  least_rows?: number;
}

/** File of an earlier encoder. */
export interface Written {
  bytes: number;
  state: string | null;
}

type OpenEncoder = (columns: readonly Column[], written: Written | null) => Encoder | Promise<Encoder>;

export const EXPORT_FORMATS = ['ndjson', 'csv', 'avro', 'parquet'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

const ENCODERS: Readonly<Record<ExportFormat, OpenEncoder>> = {
  ndjson: ndjsonEncoder,
  csv: csvEncoder,
  avro: avroEncoder,
  parquet: parquetEncoder,
};

/** Opens an encoder for a new file, or one that continues the file of an earlier one. */
export const openEncoder = async (
  format: ExportFormat,
  columns: readonly Column[],
  written: Written | null,
): Promise<Encoder> => ENCODERS[format](columns, written);
