// Verifies the worked example of CONTRIBUTING.md: writes its blocks into a copy of the tree, type-checks it, checks its
// imports and runs its test.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import prettier from 'prettier';
import { install, root } from '../prepare.mjs';

const LEFT_OUT = new Set(['.git', 'node_modules', 'dist', '.lumio', 'coverage']);

/** Maximum lines of an area without its test, as prettier formats it. */
const MAX_LINES = 120;

install({ dev: true });
const blocks = [
  ...readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').matchAll(/^```ts file=(\S+)\n([\s\S]*?)^```$/gm),
];
if (blocks.length < 6)
  throw new Error(`CONTRIBUTING.md has ${blocks.length} blocks with a file, at least 6 are expected`);
const lines = blocks.map(([, file, text]) => (file.startsWith('test/') ? 0 : text.split('\n').length - 1));
const total = lines.reduce((sum, count) => sum + count, 0);
if (total > MAX_LINES) throw new Error(`the example takes ${total} lines without its test, at most ${MAX_LINES}`);
await checkFormat();
const copy = mkdtempSync(join(tmpdir(), 'lumio-contributing-'));
try {
  cpSync(root, copy, { recursive: true, filter: (path) => !LEFT_OUT.has(basename(path)) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  for (const [, file, text] of blocks) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    writeFileSync(join(copy, file), text);
  }
  // The product and the example's test: the other tests are checked where they stand.
  const config = JSON.parse(readFileSync(join(copy, 'tsconfig.json'), 'utf8'));
  config.exclude = ['web', 'bench', 'test'];
  config.files = blocks.map(([, file]) => file).filter((file) => file.startsWith('test/'));
  writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify(config));
  // The copied benchmarks have packages of their own, which the copy lacks.
  rmSync(join(copy, 'bench'), { recursive: true });
  await Promise.all([
    run('node_modules/typescript/bin/tsc', ['--noEmit']),
    run('scripts/architecture.mjs', []),
    run('scripts/test.mjs', ['test/community/notes.test.ts']),
  ]);
} finally {
  rmSync(copy, { recursive: true, force: true });
}

/** Checks the format, because lines are counted as formatted. */
async function checkFormat() {
  const config = await prettier.resolveConfig(join(root, 'CONTRIBUTING.md'));
  for (const [, file, text] of blocks) {
    if (!(await prettier.check(text, { ...config, filepath: file }))) throw new Error(`${file} is not formatted`);
  }
}

function run(script, args) {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [script, ...args], { cwd: copy, stdio: 'inherit' });
    child.once('error', fail);
    child.once('exit', (code) =>
      code === 0 ? done() : fail(new Error(`${script} ${args.join(' ')} failed (code ${code})`)),
    );
  });
}
