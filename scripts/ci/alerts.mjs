// Checks docs/operating/alerts.yml with promtool and runs its cases. promtool comes from Debian's package `prometheus`:
// only the program is taken out of it, so that no service is installed.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../prepare.mjs';

const promtool = found('promtool') ?? fetched();
const folder = join(root, 'docs/operating');
run(promtool, ['check', 'rules', 'alerts.yml'], folder);
run(promtool, ['test', 'rules', 'alerts.test.yml'], folder);

function found(program) {
  const { status, stdout } = spawnSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

function fetched() {
  const kept = join(process.env.LUMIO_CI_CACHE ?? join(homedir(), '.cache/lumio'), 'promtool');
  if (existsSync(kept)) return kept;
  const work = mkdtempSync(join(tmpdir(), 'lumio-promtool-'));
  try {
    if (spawnSync('apt-get', ['download', 'prometheus'], { cwd: work, stdio: 'inherit' }).status !== 0) {
      run('apt-get', ['update', '-qq'], work);
      run('apt-get', ['download', 'prometheus'], work);
    }
    const [archive] = readdirSync(work).filter((name) => name.endsWith('.deb'));
    run('dpkg-deb', ['-x', archive, 'content'], work);
    mkdirSync(join(kept, '..'), { recursive: true });
    run('cp', [join(work, 'content/usr/bin/promtool'), `${kept}.part`], work);
    renameSync(`${kept}.part`, kept);
    return kept;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function run(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed (${error?.message ?? `code ${status}`})`);
}
