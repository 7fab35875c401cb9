import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataFolderBusy, holdDataFolder } from '../engines/data-folder';

describe('data folder', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'lumio-folder-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test('a second holder is refused with a line that names folder and pid, until the first lets go', () => {
    const first = holdDataFolder(folder);
    expect(() => holdDataFolder(folder)).toThrow(DataFolderBusy);
    expect(() => holdDataFolder(folder)).toThrow(new RegExp(`pid ${process.pid}.*${folder}`));
    first.release();
    holdDataFolder(folder).release();
  });

  test.each([
    ['a process that is gone', JSON.stringify({ pid: 2 ** 22 - 1, started: '1' })],
    ['a process whose pid another program has now', JSON.stringify({ pid: process.pid, started: '1' })],
    ['a crash in the middle of writing it', '{"pid":'],
  ])('a lock left by %s is taken over', (_case, content) => {
    writeFileSync(join(folder, 'lumio.lock'), content);
    const held = holdDataFolder(folder);
    expect(JSON.parse(readFileSync(join(folder, 'lumio.lock'), 'utf8')).pid).toBe(process.pid);
    held.release();
  });
});
