import { createHash } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Another Lumio holds the data folder. */
export class DataFolderBusy extends Error {}

/**
 * Makes the data folder and holds it until `release`: two processes on one folder would start two databases on the same
 * files. A lock that a killed process left behind is taken over.
 * @throws DataFolderBusy
 */
export function holdDataFolder(data_dir: string): { release(): void } {
  mkdirSync(data_dir, { recursive: true, mode: 0o755 });
  return hold(join(data_dir, 'lumio.lock'), data_dir);
}

function hold(path: string, data_dir: string): { release(): void } {
  const own = JSON.stringify({ pid: process.pid, started: startOf(process.pid) });
  for (let attempt = 0; attempt < 5; attempt++) {
    if (create(path, own)) return { release: () => rmSync(path, { force: true }) };
    const text = textOf(path);
    const holder = holderOf(text);
    if (holder && isAlive(holder)) {
      throw new DataFolderBusy(
        `another lumio (pid ${holder.pid}) is running on ${data_dir}: stop it, or set LUMIO_DATA_DIR to another folder`,
      );
    }
    if (text !== undefined) remove(path, text, data_dir);
  }
  throw new DataFolderBusy(`${path} keeps appearing: another lumio is starting on ${data_dir}`);
}

/** False when there is one. It is never there without its text, so that nobody takes it for one that was cut off. */
function create(path: string, text: string): boolean {
  const whole = `${path}.${process.pid}`;
  writeFileSync(whole, text, { mode: 0o600 });
  try {
    linkSync(whole, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    rmSync(whole, { force: true });
  }
}

/**
 * Removes the lock that holds this text, and no other one: who removes holds a lock of that lock, and looks again, so
 * that of many who found it left behind one removes it, before a new one is there.
 */
function remove(path: string, text: string, data_dir: string): void {
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 8);
  const removing = hold(`${path}-${digest}`, data_dir);
  try {
    if (textOf(path) === text) rmSync(path, { force: true });
  } finally {
    removing.release();
  }
}

/** Undefined when there is no such file. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

interface Holder {
  pid: number;
  started: string | null;
}

function holderOf(text: string | undefined): Holder | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Holder;
  } catch (error) {
    // Cut off by a crash in the middle of writing: nobody holds it.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isAlive(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return holder.started === null || holder.started === startOf(holder.pid);
}

/**
 * Start time of a process in clock ticks since boot, which tells it from a later one with the same pid; null where
 * /proc is missing.
 */
function startOf(pid: number): string | null {
  const stat = `/proc/${pid}/stat`;
  if (!existsSync(stat)) return null;
  const text = readFileSync(stat, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? null;
}
