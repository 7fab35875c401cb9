// Compiles every TypeScript file of the project to dist/, one to one, as CommonJS, bundles the pages of web/ for
// browsers, and copies the SQL that is read at run time. Types are checked separately (npm run typecheck).
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './prepare.mjs';
import { rooms, sources } from './rooms.mjs';

const FUNCTIONS = 'migrations/functions';
const PAGES = 'web';
/** Oldest browsers of each page; broadcasting programs have old ones. */
const TARGETS = {
  live: ['chrome111', 'firefox114', 'safari16.4'],
  overlay: ['chrome103'],
  'overlay-frame': ['chrome103'],
};
/** Scripts that a page of an opaque origin loads: modules would need CORS. */
const NO_MODULES = new Set(['overlay-frame']);

export async function compile() {
  const { build } = await import('esbuild');
  const dist = join(root, 'dist');
  const { outputFiles } = await build({
    entryPoints: rooms(root)
      .filter((room) => room !== PAGES)
      .flatMap((room) => sources(join(root, room))),
    outdir: dist,
    outbase: root,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'warning',
    write: false,
  });
  const files = outputFiles.map(({ path, contents }) => [path, Buffer.from(contents)]);
  files.push(...(await pages(build, join(dist, PAGES))));
  for (const name of readdirSync(join(root, FUNCTIONS)))
    files.push([join(dist, FUNCTIONS, name), readFileSync(join(root, FUNCTIONS, name))]);
  for (const [path, contents] of files) place(path, contents);
  removeStale(dist, new Set(files.map(([path]) => relative(dist, path))));
}

/** Bundles each page into one script and one style, without external resources. */
async function pages(build, outdir) {
  const files = [];
  for (const [name, target] of Object.entries(TARGETS)) {
    const { outputFiles } = await build({
      entryPoints: [`${name}.ts`, `${name}.css`].map((file) => join(root, PAGES, file)),
      outdir,
      bundle: true,
      platform: 'browser',
      target,
      format: NO_MODULES.has(name) ? 'iife' : 'esm',
      logLevel: 'warning',
      write: false,
    });
    for (const { path, contents } of outputFiles) files.push([path, Buffer.from(contents)]);
    files.push([join(outdir, `${name}.html`), readFileSync(join(root, PAGES, `${name}.html`))]);
  }
  return files;
}

/**
 * Skips an unchanged file, and replaces a changed one atomically: a concurrent build, or a running program, never reads
 * a part of a file.
 */
function place(path, contents) {
  if (read(path)?.equals(contents)) return;
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, contents);
  renameSync(draft, path);
}

function read(path) {
  try {
    return readFileSync(path);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Removes renamed and deleted files from dist/, and drafts of dead builds; a running build keeps its drafts. */
function removeStale(dist, kept) {
  for (const entry of readdirSync(dist, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const builder = /\.(\d+)\.new$/.exec(entry.name)?.[1];
    if (builder === undefined ? !kept.has(relative(dist, path)) : !isAlive(Number(builder)))
      rmSync(path, { force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await compile();
