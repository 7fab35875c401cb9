import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataFolderBusy, holdDataFolder, servingAt } from '../../engines/data-folder';

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

  test('names the address of its server while that lives', () => {
    expect(servingAt(folder)).toBeUndefined();
    const held = holdDataFolder(folder);
    held.serveAt('http://127.0.0.1:4711');
    expect(servingAt(folder)).toBe('http://127.0.0.1:4711');
    held.release();
    expect(servingAt(folder)).toBeUndefined();
    // A killed server leaves its file.
    const killed = { pid: 2 ** 22 - 1, started: '1', base_url: 'http://127.0.0.1:4711' };
    writeFileSync(join(folder, 'lumio.serving'), JSON.stringify(killed));
    expect(servingAt(folder)).toBeUndefined();
    holdDataFolder(folder).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ['a process that is gone', JSON.stringify({ pid: 2 ** 22 - 1, started: '1' })],
    ['a process whose pid another program has now', JSON.stringify({ pid: process.pid, started: '1' })],
    ['a crash in the middle of writing it', '{"pid":'],
  ])('a lock left by %s is taken over', (_case, content) => {
    writeFileSync(join(folder, 'lumio.lock'), content);
    const held = holdDataFolder(folder);
    expect(JSON.parse(readFileSync(join(folder, 'lumio.lock'), 'utf8')).pid).toBe(process.pid);
    expect(readdirSync(folder)).toEqual(['lumio.lock']);
    held.release();
  });

  test('a lock that another process takes over at the same moment stays with that one', () => {
    const path = join(folder, 'lumio.lock');
    const gone = 2 ** 22 - 1;
    writeFileSync(path, JSON.stringify({ pid: gone, started: '1' }));
    let written: bigint | undefined;
    const kill = process.kill.bind(process);
    const looked = jest.spyOn(process, 'kill').mockImplementation((pid, signal) => {
      // The other one has found the same, and is faster.
      if (pid === gone) {
        writeFileSync(path, JSON.stringify({ pid: process.ppid, started: null }));
        written = statSync(path, { bigint: true }).ctimeNs;
        // The clock of a file system stands still for some milliseconds.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
      }
      return kill(pid, signal);
    });
    try {
      expect(() => holdDataFolder(folder)).toThrow(new RegExp(`pid ${process.ppid}`));
    } finally {
      looked.mockRestore();
    }
    expect(JSON.parse(readFileSync(path, 'utf8')).pid).toBe(process.ppid);
    // Nor was it away for a moment, in which a third could have begun.
    expect(statSync(path, { bigint: true }).ctimeNs).toBe(written);
    expect(readdirSync(folder)).toEqual(['lumio.lock']);
  });

  test('a process that was killed while it took a lock over stops nobody', () => {
    const path = join(folder, 'lumio.lock');
    const left = JSON.stringify({ pid: 2 ** 22 - 1, started: '1' });
    writeFileSync(path, left);
    const digest = createHash('sha256').update(left).digest('hex').slice(0, 8);
    writeFileSync(`${path}-${digest}`, JSON.stringify({ pid: 2 ** 22 - 2, started: '1' }));
    holdDataFolder(folder).release();
    expect(readdirSync(folder)).toEqual([]);
  });
});
