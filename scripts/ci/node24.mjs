// Repeats the end-to-end tests with Node 24, but for those that start dozens or hundreds of processes (refused starts,
// commands killed and repeated): what they go through is the same on every version.
import { join } from 'node:path';
import { node24, run } from '../node24.mjs';
import { build, install, root } from '../prepare.mjs';

const node = node24();
install({ dev: true });
await build();
run(node, ['--version']);
const jest = join(root, 'node_modules/jest/bin/jest.js');
const left_out = 'test/e2e/(admin|admin-killed|environment|repeats|start)\\.test';
run(node, [jest, 'test/e2e', '--testPathIgnorePatterns', '/node_modules/', left_out]);
