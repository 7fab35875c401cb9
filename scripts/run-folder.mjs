// The folder for temporary files of one run of tests: its own, so that what a test leaves behind is found, named, and
// gone.
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './prepare.mjs';

/** jest's cache outlives the run: without a place of its own it would lie in the run's folder. */
export const JEST_CACHE = `--cacheDirectory=${join(root, 'node_modules/.cache/jest')}`;

/**
 * `env` is for the processes of the run. `close` removes the folder, and returns whether it was empty; what was left is
 * named on stderr, after all that the run itself has said.
 */
export function openRunFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-run-'));
  // Tests run servers as users without rights of their own, who must be able to enter it.
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
