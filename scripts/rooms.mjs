// The rooms of docs/architecture.md are the first-level folders that hold TypeScript: a new one is compiled and checked
// without a list.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const NO_ROOMS = new Set(['node_modules', 'dist']);

/** Every TypeScript file below a folder, as a path. */
export function sources(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** The names of the rooms below `base`, in the order of the alphabet. */
export function rooms(base) {
  return readdirSync(base, { withFileTypes: true })
    .filter(({ name }) => !name.startsWith('.') && !NO_ROOMS.has(name))
    .filter((entry) => entry.isDirectory() && sources(join(base, entry.name)).length > 0)
    .map(({ name }) => name)
    .sort();
}
