import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENGINES } from './toxiproxy';

const LIBRARY = join(ENGINES, 'faketime/libfaketime.so.1');

/**
 * The wall clock of one process, which can be made to jump while it runs; its monotonic clock goes on, as a real
 * machine's does.
 */
export interface FakeClock {
  /** For the process's environment. */
  env: Record<string, string>;
  /** Seconds away from true time, from now on. */
  jump(seconds: number): void;
  dispose(): void;
}

export function fakeClock(): FakeClock {
  if (!existsSync(LIBRARY)) throw new Error(`${LIBRARY} is missing: run npm run test:faults, which fetches it`);
  const folder = mkdtempSync(join(tmpdir(), 'lumio-faults-clock-'));
  const [file, library] = [join(folder, 'clock'), join(folder, 'libfaketime.so.1')];
  // A database is another user's process.
  copyFileSync(LIBRARY, library);
  chmodSync(folder, 0o755);
  const jump = (seconds: number) => writeFileSync(file, `${seconds < 0 ? '' : '+'}${seconds}\n`);
  jump(0);
  return {
    env: { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1', DONT_FAKE_MONOTONIC: '1' },
    jump,
    dispose: () => rmSync(folder, { recursive: true, force: true }),
  };
}
