// Compiles every TypeScript file of the project to dist/, one to one, as CommonJS. Types are checked apart (npm run typecheck).
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './prepare.mjs';

const ROOMS = [
  'access',
  'api',
  'bench',
  'bin',
  'commands',
  'domain',
  'engines',
  'ingest',
  'kernel',
  'maintenance',
  'migrations',
  'projections',
  'read-api',
  'realtime',
  'test',
  'vendors',
];

function sources(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name));
}

export async function compile() {
  const { build } = await import('esbuild');
  const files = ROOMS.map((room) => join(root, room))
    .filter(existsSync)
    .flatMap(sources);
  await build({
    entryPoints: files,
    outdir: join(root, 'dist'),
    outbase: root,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'warning',
  });
  removeStale(new Set(files.map((file) => relative(root, file).replace(/\.ts$/, ''))));
}

/** A file that was renamed or deleted must not live on in dist/. */
function removeStale(kept) {
  const dist = join(root, 'dist');
  for (const entry of readdirSync(dist, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    if (!kept.has(relative(dist, path).replace(/\.js(\.map)?$/, ''))) rmSync(path);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await compile();
