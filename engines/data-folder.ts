import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
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
  const path = join(data_dir, 'lumio.lock');
  for (let attempt = 0; attempt < 5; attempt++) {
    try {
      const file = openSync(path, 'wx', 0o600);
      writeSync(file, JSON.stringify({ pid: process.pid, started: startOf(process.pid) }));
      closeSync(file);
      return { release: () => rmSync(path, { force: true }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = readHolder(path);
    if (holder && isAlive(holder)) {
      throw new DataFolderBusy(
        `another lumio (pid ${holder.pid}) is running on ${data_dir}: stop it, or set LUMIO_DATA_DIR to another folder`,
      );
    }
    rmSync(path, { force: true });
  }
  throw new DataFolderBusy(`${path} keeps appearing: another lumio is starting on ${data_dir}`);
}

interface Holder {
  pid: number;
  started: string | null;
}

function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder;
  } catch (error) {
    // Gone again, or cut off by a crash in the middle of writing: nobody holds it.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
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
