import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ExportBatch, readProgress, writeExport } from '../../maintenance/archive/export-file';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lumio-export-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const batch = (text: string, place: number): ExportBatch => ({ text, places: new Map([['0', place]]) });

test('an export that was cut off continues behind its last whole batch', async () => {
  const output = join(folder, 'events.csv');
  async function* cutOff() {
    yield batch('a\r\n', 1);
    yield batch('b\r\n', 2);
    throw new Error('killed');
  }
  await expect(writeExport(output, { head: 'id\r\n', batches: cutOff(), progress: null })).rejects.toThrow('killed');
  // A part of the next batch reached the file, not the progress.
  await appendFile(output, 'c');
  const progress = await readProgress(output);
  expect(progress).toMatchObject({ places: { 0: 2 } });
  async function* rest() {
    yield batch('c\r\nd\r\n', 4);
  }
  await writeExport(output, { head: 'id\r\n', batches: rest(), progress });
  expect(await readFile(output, 'utf8')).toBe('id\r\na\r\nb\r\nc\r\nd\r\n');
  expect(await readProgress(output)).toBeNull();
});

test('an output that exists is not overwritten', async () => {
  const output = join(folder, 'kept.csv');
  await appendFile(output, 'kept');
  async function* nothing() {}
  await expect(writeExport(output, { head: '', batches: nothing(), progress: null })).rejects.toThrow('EEXIST');
  expect(await readFile(output, 'utf8')).toBe('kept');
});
