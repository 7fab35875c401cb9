// Repeats the end-to-end tests with Node 24, but for those that start dozens or hundreds of processes (refused starts,
// commands killed and repeated): what they go through is the same on every version.
import { node24, run } from '../node24.mjs';

const LEFT_OUT = 'test/slow/e2e/(admin|admin-killed|environment|repeats|start)\\.test';

const node = node24();
run(node, ['--version']);
run(node, ['scripts/test.mjs', 'test/e2e']);
run(node, ['scripts/test-slow.mjs', 'test/slow/e2e', '--testPathIgnorePatterns', '/node_modules/', LEFT_OUT]);
