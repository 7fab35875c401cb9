// npm run client -- FOLDER: makes the package of clients/js there, as ES module and CommonJS, with types.
import { copyFileSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { install, root } from '../prepare.mjs';

const SOURCE = join(root, 'clients/js');

install({ dev: true });
const folder = process.argv[2];
if (folder === undefined) {
  console.error('usage: npm run client -- FOLDER');
  process.exit(2);
}
const target = resolve(process.env.INIT_CWD ?? '.', folder);
const { build } = await import('esbuild');
const { default: ts } = await import('typescript');

mkdirSync(target, { recursive: true });
for (const name of ['package.json', 'README.md']) copyFileSync(join(SOURCE, name), join(target, name));
for (const [format, name] of [
  ['esm', 'index.mjs'],
  ['cjs', 'index.cjs'],
])
  await build({
    entryPoints: [join(SOURCE, 'index.ts')],
    outfile: join(target, name),
    bundle: true,
    platform: 'neutral',
    target: 'es2022',
    format,
    logLevel: 'warning',
  });
// As a browser's program sees it: with the DOM and without Node.
const program = ts.createProgram([join(SOURCE, 'index.ts')], {
  declaration: true,
  emitDeclarationOnly: true,
  strict: true,
  outDir: join(target, 'types'),
  lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
  types: [],
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
});
const { diagnostics } = program.emit();
const problems = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
for (const { messageText, file } of problems)
  console.error(`${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`);
process.exit(problems.length === 0 ? 0 : 1);
