// Programs that the fault stage needs beside the npm packages, pinned, each fetched once into a cache folder: Toxiproxy (Go), libfaketime (Debian).
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

const cache = process.env.LUMIO_ENGINES_DIR ?? join(homedir(), '.cache/lumio/engines');

function run(command, args, options = {}) {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
}

/** Makes `path` with `make(draft)`, unless it is there; a crash in the middle leaves nothing half made. */
function once(path, make) {
  if (existsSync(path)) return;
  mkdirSync(join(path, '..'), { recursive: true });
  const draft = mkdtempSync(`${path}.`);
  make(draft);
  renameSync(draft, path);
}

export function fetchFaultTools() {
  once(join(cache, 'toxiproxy-2.5.0'), (draft) => {
    console.error('fault tools: building Toxiproxy 2.5.0 …');
    run('go', ['install', 'github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0'], {
      env: { ...process.env, GOBIN: draft },
    });
  });
  once(join(cache, 'faketime-0.9.10'), (draft) => {
    console.error('fault tools: fetching libfaketime 0.9.10 …');
    const folder = mkdtempSync(join(tmpdir(), 'lumio-faketime-'));
    run('apt-get', ['download', 'libfaketime'], { cwd: folder });
    run('dpkg', ['-x', readdirSync(folder).find((name) => name.endsWith('.deb')), '.'], { cwd: folder });
    const lib = readdirSync(folder, { recursive: true }).find((name) => name.endsWith('/libfaketime.so.1'));
    copyFileSync(join(folder, lib), join(draft, 'libfaketime.so.1'));
    rmSync(folder, { recursive: true });
  });
  for (const program of ['redis-server', 'prlimit']) {
    if (spawnSync('which', [program]).status !== 0) throw new Error(`the fault stage needs ${program} on the path`);
  }
}
