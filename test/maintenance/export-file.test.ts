import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { streams } from 'avsc';
import { type ExportBatch, readProgress, writeExport } from '../../maintenance/archive/export-file';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lumio-export-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const part = (text: string) => ({ data: Buffer.from(text), state: null });
const batch = (text: string, place: number): ExportBatch => ({ ...part(text), places: new Map([['0', place]]) });
const tail = () => Buffer.alloc(0);
const options = 'events csv';

test('an export that was cut off continues behind its last whole batch', async () => {
  const output = join(folder, 'events.csv');
  async function* cutOff() {
    yield batch('a\r\n', 1);
    yield batch('b\r\n', 2);
    throw new Error('killed');
  }
  await expect(
    writeExport(output, { head: part('id\r\n'), batches: cutOff(), tail, options, progress: null }),
  ).rejects.toThrow('killed');
  // A part of the next batch reached the file, not the progress.
  await appendFile(output, 'c');
  const progress = await readProgress(output, options);
  await expect(readProgress(output, 'events parquet')).rejects.toThrow(
    `${output} was begun with other options: events csv`,
  );
  expect(progress).toMatchObject({ places: { 0: 2 } });
  async function* rest() {
    yield batch('c\r\nd\r\n', 4);
  }
  await writeExport(output, { head: part('id\r\n'), batches: rest(), tail, options, progress });
  expect(await readFile(output, 'utf8')).toBe('id\r\na\r\nb\r\nc\r\nd\r\n');
  expect(await readProgress(output, options)).toBeNull();
});

test('an output that lost bytes of its progress is not continued', async () => {
  const output = join(folder, 'short.csv');
  await appendFile(output, 'id\r\na');
  const progress = { bytes: 7, places: { 0: 1 }, state: null, options };
  async function* rest() {
    yield batch('b\r\n', 2);
  }
  await expect(writeExport(output, { head: part('id\r\n'), batches: rest(), tail, options, progress })).rejects.toThrow(
    `${output} has 5 bytes, fewer than the 7 of its progress: export it again`,
  );
  expect(await readFile(output, 'utf8')).toBe('id\r\na');
});

test('an export that was killed before its first progress begins again; one with rows does not', async () => {
  const output = join(folder, 'begun.csv');
  await appendFile(output, '');
  const progress = await readProgress(output, options);
  expect(progress).toMatchObject({ bytes: 0, places: {} });
  async function* rows() {
    yield batch('a\r\n', 1);
  }
  await writeExport(output, { head: part('id\r\n'), batches: rows(), tail, options, progress });
  expect(await readFile(output, 'utf8')).toBe('id\r\na\r\n');
  expect(await readProgress(output, options)).toBeNull();
  const torn = join(folder, 'torn.csv');
  await appendFile(torn, 'i');
  await appendFile(`${torn}.progress`, JSON.stringify({ bytes: 0, places: {}, state: null, options }));
  const nothing_yet = await readProgress(torn, options);
  await writeExport(torn, { head: part('id\r\n'), batches: rows(), tail, options, progress: nothing_yet });
  expect(await readFile(torn, 'utf8')).toBe('id\r\na\r\n');
});

test('an output that exists is not overwritten', async () => {
  const output = join(folder, 'kept.csv');
  await appendFile(output, 'kept');
  async function* nothing() {}
  await expect(
    writeExport(output, { head: part(''), batches: nothing(), tail, options, progress: null }),
  ).rejects.toThrow('EEXIST');
  expect(await readFile(output, 'utf8')).toBe('kept');
});

describe('typed formats', () => {
  const COLUMNS = [
    { name: 'id', kind: 'text' },
    { name: 'viewers', kind: 'integer' },
    { name: 'hours', kind: 'number' },
    { name: 'sampled_at', kind: 'time' },
  ];
  const ROWS = [
    { id: 'é', viewers: 2 ** 40, hours: 0.5, sampled_at: '2026-01-02T03:04:05.000006Z' },
    { id: null, viewers: null, hours: null, sampled_at: null },
    { id: 'c', viewers: 0, hours: -1, sampled_at: '1969-12-31T23:59:59Z' },
  ];
  const AT = Date.parse('2026-01-02T03:04:05Z') * 1000 + 6;

  /** A file of a batch, and of two that a second encoder adds; by another process, since jest loads no ES modules. */
  const written = async (format: string, then: string): Promise<any> => {
    const program = `
      const { openEncoder } = require('./dist/maintenance/archive/files/encoder');
      (async () => {
        const [columns, rows] = ${JSON.stringify([COLUMNS, ROWS])};
        const first = await openEncoder('${format}', columns, null);
        const begun = Buffer.concat([first.head, first.rows(rows.slice(0, 1))]);
        const next = await openEncoder('${format}', columns, { bytes: begun.length, state: first.state() });
        const file = Buffer.concat([begun, next.rows(rows.slice(1, 2)), next.rows(rows.slice(2)), next.tail()]);
        ${then}
      })().catch((error) => { console.error(error); process.exitCode = 1; });`;
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { cwd: join(__dirname, '../..') });
    return JSON.parse(stdout);
  };

  test('parquet has typed columns, also after a continuation', async () => {
    const read = await written(
      'parquet',
      `const { parquetMetadata, parquetReadObjects } = await import('hyparquet');
       const buffer = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
       const read = await parquetReadObjects({ file: buffer });
       const { schema, row_groups } = parquetMetadata(buffer);
       const { readRows } = require('./dist/maintenance/archive/files/decoder');
       const again = [];
       const parts = { byteLength: buffer.byteLength, slice: async (from, to) => buffer.slice(from, to) };
       for await (const some of readRows('parquet', parts)) again.push(...some);
       console.log(JSON.stringify({ rows: read, again, types: schema.slice(1).map(({ type }) => type), groups: row_groups.length },
         (_key, value) => (typeof value === 'bigint' ? Number(value) : value)));`,
    );
    expect(read.types).toEqual(['BYTE_ARRAY', 'INT64', 'DOUBLE', 'INT64']);
    expect(read.groups).toBe(3);
    expect(read.again).toEqual([ROWS[0], ROWS[1], { ...ROWS[2], sampled_at: '1969-12-31T23:59:59.000000Z' }]);
    expect(read.rows).toEqual([
      { ...ROWS[0], sampled_at: '2026-01-02T03:04:05.000Z' },
      ROWS[1],
      { ...ROWS[2], sampled_at: '1969-12-31T23:59:59.000Z' },
    ]);
  });

  test('avro has typed columns, also after a continuation', async () => {
    const file = await written('avro', `console.log(JSON.stringify(file.toString('base64')));`);
    const decoder = new streams.BlockDecoder();
    const read: any[] = [];
    decoder.on('data', (row) => read.push({ ...row }));
    const ended = new Promise((resolve, reject) => decoder.on('end', resolve).on('error', reject));
    decoder.end(Buffer.from(file, 'base64'));
    await ended;
    expect(read).toEqual([{ ...ROWS[0], sampled_at: AT }, ROWS[1], { ...ROWS[2], sampled_at: -1_000_000 }]);
  });
});
