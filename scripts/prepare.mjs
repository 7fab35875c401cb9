// First step of every npm script: installs the packages of the lock file, and compiles the code. Both only when
// something is missing.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Installs the packages of package-lock.json that are missing or of another version; `dev` adds those for tests and
 * checks.
 */
export function install({ dev }) {
  if (isInstalled(dev)) return;
  console.error('lumio: installing packages (npm ci) …');
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error', ...(dev ? [] : ['--omit=dev'])];
  const { status, error } = spawnSync('npm', args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error(`npm ci failed${error ? `: ${error.message}` : ` (code ${status})`}`);
}

/** npm writes what it has installed to a lock file inside node_modules. */
function isInstalled(dev) {
  const installed = join(root, 'node_modules/.package-lock.json');
  if (!existsSync(installed)) return false;
  const have = JSON.parse(readFileSync(installed, 'utf8')).packages;
  const want = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(want).every(
    ([path, wanted]) =>
      path === '' ||
      have[path]?.version === wanted.version ||
      (have[path] === undefined && (wanted.optional || wanted.devOptional || wanted.peer || (wanted.dev && !dev))),
  );
}

/** Compiles to dist/; a fraction of a second. */
export async function build() {
  const { compile } = await import(pathToFileURL(join(root, 'scripts/build.mjs')).href);
  await compile();
}
