// Compiles every TypeScript file of the project to dist/, one to one, as CommonJS. Types are checked apart (npm run
// typecheck).
import { readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './prepare.mjs';
import { rooms, sources } from './rooms.mjs';

export async function compile() {
  const { build } = await import('esbuild');
  const files = rooms(root).flatMap((room) => sources(join(root, room)));
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
