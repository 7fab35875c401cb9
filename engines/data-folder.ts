import { createHash } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Another Lumio holds the data folder. */
export class DataFolderBusy extends Error {}

/**
 * Creates the data folder and locks it until `release`, because two processes on one folder would start two databases
 * on the same files. Takes over the lock of a killed process.
 * @throws DataFolderBusy
 */
export function holdDataFolder(data_dir: string): HeldFolder {
  mkdirSync(data_dir, { recursive: true, mode: 0o755 });
  const lock = hold(join(data_dir, 'lumio.lock'), data_dir);
  const serving = join(data_dir, SERVING);
  rmSync(serving, { force: true });
  return {
    serveAt: (base_url) => writeFileSync(serving, JSON.stringify({ ...me(), base_url }), { mode: 0o600 }),
    release() {
      rmSync(serving, { force: true });
      lock.release();
    },
  };
}

/** Address of the server of this data folder; undefined without an active one. */
export function servingAt(data_dir: string): string | undefined {
  const server = holderOf(textOf(join(data_dir, SERVING))) as (Holder & { base_url: string }) | undefined;
  return server && isAlive(server) ? server.base_url : undefined;
}

export interface HeldFolder {
  /** Records the address of the holder's server, for commands on the same folder. */
  serveAt(base_url: string): void;
  release(): void;
}

const SERVING = 'lumio.serving';
const me = () => ({ pid: process.pid, started: startOf(process.pid) });

function hold(path: string, data_dir: string): { release(): void } {
  const own = JSON.stringify(me());
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

/** Creates the lock file atomically with its text, so that it is never seen incomplete. False when the file exists. */
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
 * Removes the lock file with this text, and no other one: takes a lock of its own for the removal and reads the file
 * again, so that of many processes that found a stale lock one removes it, before a new one exists.
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

/** Text of a file; undefined for a missing one. */
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
    // A file truncated by a crash is not a lock.
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
 * Start time of a process in clock ticks since boot, which distinguishes processes that had the same pid; null where
 * /proc is missing.
 */
function startOf(pid: number): string | null {
  const stat = `/proc/${pid}/stat`;
  if (!existsSync(stat)) return null;
  const text = readFileSync(stat, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? null;
}
