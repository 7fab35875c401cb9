// npm test: installs, compiles (end-to-end tests start the compiled server), then runs jest with the arguments given.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build, install, root } from './prepare.mjs';

install({ dev: true });
await build();
const jest = join(root, 'node_modules/jest/bin/jest.js');
const { status } = spawnSync(process.execPath, [jest, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' });
process.exit(status ?? 1);
