// The folder for temporary files of one test run, so that files left by a test are found, named, and deleted.
import { accessSync, chmodSync, constants, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './prepare.mjs';

/** jest's cache outlives the run: without a folder of its own it would be in the run's folder. */
export const JEST_CACHE = `--cacheDirectory=${join(root, 'node_modules/.cache/jest')}`;

const MEMORY = '/dev/shm';
/** Free memory that a run's databases and logs need at most, with room for what else runs. */
const MEMORY_BYTES = 6 * 2 ** 30;

/** The folder for a run's folder: in memory where there is enough, because tests create hundreds of databases. */
function parentFolder() {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= MEMORY_BYTES ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

/**
 * `env` is for the processes of the run. `close` removes the folder, and returns whether it was empty; remaining files
 * are named on stderr, after all output of the run itself.
 */
export function openRunFolder() {
  const folder = mkdtempSync(join(parentFolder(), 'lumio-run-'));
  // Tests run servers as unprivileged users, who must be able to enter it.
  chmodSync(folder, 0o711);
  return {
    env: { ...process.env, TMPDIR: folder },
    close() {
      const left = readdirSync(folder).sort();
      if (left.length > 0) console.error(`lumio: the tests left behind in ${folder}: ${left.join(', ')}`);
      try {
        rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
      } catch (error) {
        // A run that was killed may have left processes that still write there.
        console.error(`lumio: ${folder} could not be removed: ${error.message}`);
        return false;
      }
      return left.length === 0;
    },
  };
}
