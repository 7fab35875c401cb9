// Installs the tools of the fault stage in addition to the engines (install.mjs): libfaketime, as Debian builds it,
// without installing it into the system.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { folder as cache, installEngines } from './install.mjs';

function run(command, args, options = {}) {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
}

/**
 * Fetches missing tools; throws when one is unavailable, because a fault that was not injected must not count as
 * survived.
 */
export function fetchFaultTools() {
  installEngines();
  const library = join(cache, 'faketime/libfaketime.so.1');
  if (!existsSync(library)) {
    console.error('lumio: fetching libfaketime …');
    const folder = mkdtempSync(join(tmpdir(), 'lumio-faketime-'));
    run('apt-get', ['download', 'libfaketime'], { cwd: folder });
    run('dpkg', ['-x', readdirSync(folder).find((name) => name.endsWith('.deb')), '.'], { cwd: folder });
    const found = readdirSync(folder, { recursive: true }).find((name) => name.endsWith('/libfaketime.so.1'));
    mkdirSync(join(cache, 'faketime'), { recursive: true });
    // Renamed when complete: a crash in between leaves no file that seems complete.
    copyFileSync(join(folder, found), `${library}.new`);
    renameSync(`${library}.new`, library);
    rmSync(folder, { recursive: true });
  }
  if (spawnSync('which', ['prlimit']).status !== 0) throw new Error('the fault stage needs prlimit (util-linux)');
}
