// One run of jest: installs, compiles (end-to-end tests start the compiled server), then runs jest in a folder for
// temporary files of its own.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build, install, root } from './prepare.mjs';
import { openResults } from './results.mjs';
import { JEST_CACHE, openRunFolder } from './run-folder.mjs';
import { lookAgain } from './second-look.mjs';

/**
 * Runs jest with these arguments and returns the exit code: 1 when a test failed, or left a file or folder behind. With
 * `second_look`, up to three failed files run once more, alone; those that pass are named in the last lines and do not
 * fail the run.
 */
export async function runJest(args, { second_look = false } = {}) {
  install({ dev: true });
  await build();
  const results = openResults();
  const run = openRunFolder();
  const jest = (...own) =>
    spawnSync(process.execPath, [join(root, 'node_modules/jest/bin/jest.js'), JEST_CACHE, ...own], {
      cwd: root,
      stdio: 'inherit',
      env: { ...run.env, CI_RESULTS_FILE: results.file },
    }).status ?? 1;
  let status = jest(...args);
  if (status !== 0 && second_look) {
    const runAlone = (file) => jest('--maxWorkers=1', '--runTestsByPath', file);
    const { flaky, refusal } = lookAgain({ read: results.read, runAlone });
    for (const { file, failure } of flaky) {
      results.append({ flaky: file, failure });
      console.error(`FLAKY ${file}: ${failure}`);
    }
    if (refusal) console.error(`lumio: ${refusal}`);
    else status = 0;
  }
  results.close();
  return run.close() ? status : status || 1;
}
