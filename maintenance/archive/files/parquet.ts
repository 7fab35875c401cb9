import type { RowGroup, SchemaElement } from 'hyparquet' with { 'resolution-mode': 'import' };
import { type Column, type ColumnKind, typedValue } from './columns';
import type { Encoder, Written } from './encoder';

/** Rows of a row group: as many are in memory at a time. */
const GROUP_ROWS = 20_000;

const TYPES: Readonly<Record<ColumnKind, Pick<SchemaElement, 'type' | 'converted_type'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT64' },
  number: { type: 'DOUBLE' },
  flag: { type: 'BOOLEAN' },
  time: { type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
};

/** Parquet files: a row group for each batch. The state has the places of the row groups, which stand at the end. */
export async function parquetEncoder(columns: readonly Column[], written: Written | null): Promise<Encoder> {
  const { ByteWriter, ParquetWriter } = await import('hyparquet-writer');
  const schema: SchemaElement[] = [
    { name: 'row', num_children: columns.length },
    ...columns.map(({ name, kind }): SchemaElement => ({ name, repetition_type: 'OPTIONAL', ...TYPES[kind] })),
  ];
  const bytes = new ByteWriter();
  const take = (): Buffer => {
    const taken = Buffer.from(bytes.getBytes());
    bytes.index = 0;
    return taken;
  };
  const file = new ParquetWriter({ writer: bytes, schema, statistics: false, createdBy: 'lumio' });
  const head = take();
  if (written !== null) {
    bytes.offset = written.bytes;
    file.row_groups = readGroups(written.state ?? '[]');
    file.num_rows = file.row_groups.reduce((sum, { num_rows }) => sum + num_rows, 0n);
  }
  return {
    head,
    least_rows: GROUP_ROWS,
    rows(rows) {
      void file.write({
        columnData: columns.map((column) => ({
          name: column.name,
          data: rows.map((row) => parquetValue(column, row)),
          offsetIndex: false,
        })),
        rowGroupSize: rows.length,
      });
      file.pendingIndexes = [];
      return take();
    },
    state: () =>
      JSON.stringify(file.row_groups, (_key, value) => (typeof value === 'bigint' ? { big: `${value}` } : value)),
    tail() {
      void file.finish();
      return take();
    },
  };
}

function parquetValue(column: Column, row: Record<string, unknown>): string | number | bigint | boolean | null {
  const value = typedValue(column, row);
  const is_long = column.kind === 'integer' || column.kind === 'time';
  return is_long && value !== null ? BigInt(Math.trunc(Number(value))) : value;
}

const readGroups = (state: string): RowGroup[] =>
  JSON.parse(state, (_key, value: unknown) =>
    typeof value === 'object' && value !== null && 'big' in value ? BigInt(String(value.big)) : value,
  ) as RowGroup[];
