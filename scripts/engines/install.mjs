// Real engines for test:engines, from package registries alone, at fixed versions, into a folder outside the checkout.
// Installed engines are kept. Usage: node scripts/engines/install.mjs [NAME ...] (without a name, all of them)
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../prepare.mjs';

export const folder = process.env.LUMIO_ENGINES_DIR ?? join(homedir(), '.cache/lumio-engines');

const run = (program, args, options = {}) => execFileSync(program, args, { stdio: ['ignore', 2, 2], ...options });
const answer = (program, args) => {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return status === 0 ? `${stdout}${stderr}` : undefined;
};

/**
 * Installs into a temporary folder, which replaces the target when complete: a crash in between leaves no folder that
 * seems complete.
 */
function replaced(name, install) {
  const [fresh, target] = [join(folder, `${name}.new`), join(folder, name)];
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  install(fresh);
  rmSync(target, { recursive: true, force: true });
  renameSync(fresh, target);
}

/**
 * A program written in Go; the binary itself contains the versions of its modules, so that no separate note can be
 * wrong or missing.
 */
function goProgram(name, version, module, install) {
  const program = join(folder, name, name);
  return {
    version,
    present: () => existsSync(program) && readFileSync(program).includes(`\t${module}\tv${version}\t`),
    install: () => replaced(name, (target) => install(target, join(target, name))),
  };
}

/** A Go program from its published module: `path` is its package within the module. */
const goInstalled = (name, version, module, path) =>
  goProgram(name, version, module, (target, program) => {
    const source = path === '' ? module : `${module}/${path}`;
    run('go', ['install', `${source}@v${version}`], { env: { ...process.env, GOBIN: target }, cwd: folder });
    if (path !== '') renameSync(join(target, path.split('/').at(-1)), program);
  });

/**
 * Lumio at a commit of this repository, with the packages of its own lock file. Without a commit (a copy of the files
 * has no history) any installed build counts.
 */
function ownBuild(name, commit) {
  const note = join(folder, name, 'commit');
  const installed = existsSync(note) ? readFileSync(note, 'utf8') : undefined;
  return {
    version: commit ?? installed,
    present: () => installed !== undefined && installed === (commit ?? installed),
    install: () =>
      replaced(name, (target) => {
        const archive = join(target, 'source.tar');
        if (answer('git', ['-C', root, 'cat-file', '-e', `${commit}^{commit}`]) === undefined)
          throw new Error(`this clone has no commit ${commit}: get the whole history (git fetch --unshallow)`);
        run('git', ['-C', root, 'archive', '--output', archive, commit]);
        run('tar', ['-xf', archive, '-C', target]);
        rmSync(archive);
        run('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: target });
        run(process.execPath, ['scripts/build.mjs'], { cwd: target });
        writeFileSync(join(target, 'commit'), commit);
      }),
  };
}

/**
 * The commit 50 to 99 first parents back, equal for 50 commits so that its installation is kept; undefined without a
 * history.
 */
function previousRelease() {
  const count = Number(answer('git', ['-C', root, 'rev-list', '--count', '--first-parent', 'HEAD']));
  const back = count - Math.floor((count - 50) / 50) * 50;
  return answer('git', ['-C', root, 'rev-parse', '--short=12', '--verify', `HEAD~${back}`])?.trim();
}

/** Installs a Debian package without starting its server. */
function aptInstall(name) {
  run('apt-get', ['update', '-q']);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  run('apt-get', ['install', '-y', '-q', '--no-upgrade', '--no-install-recommends', name], { env });
}

// Used as the system provides it: without upgrades, and without rights.
const OF_THE_SYSTEM = 'of this Debian';

/** Installation of each engine; `present` checks whether the wanted version is installed. */
const ENGINES = {
  kafka: {
    version: '4.1.0',
    present: () => existsSync(join(folder, 'kafka/libs/kafka_2.13-4.1.0.jar')),
    install: () =>
      replaced('kafka', (target) => {
        const pom = join(root, 'test/engines/support/pom.xml');
        const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
        run('mvn', ['-q', '-B', '-f', pom, goal, `-DoutputDirectory=${join(target, 'libs')}`]);
      }),
  },
  redis: {
    version: OF_THE_SYSTEM,
    present: () => answer('redis-server', ['--version']) !== undefined,
    install: () => aptInstall('redis-server'),
  },
  'postgresql-15': {
    version: OF_THE_SYSTEM,
    present: () => existsSync('/usr/lib/postgresql/15/bin/initdb'),
    install: () => aptInstall('postgresql-15'),
  },
  versitygw: goInstalled('versitygw', '1.8.0', 'github.com/versity/versitygw', 'cmd/versitygw'),
  // Built here, from the fake registry of franz-go, with its version.
  'schema-registry': goProgram('schema-registry', '1.8.0', 'github.com/twmb/franz-go/pkg/sr', (_target, program) =>
    run('go', ['build', '-o', program, '.'], { cwd: join(root, 'test/engines/support/schema-registry') }),
  ),
  fastavro: {
    version: '1.12.1',
    present: () => existsSync(join(folder, 'fastavro/fastavro-1.12.1.dist-info')),
    install: () =>
      replaced('fastavro', (target) => {
        const options = ['--quiet', '--disable-pip-version-check', '--target', target];
        run('python3', ['-m', 'pip', 'install', ...options, 'fastavro==1.12.1']);
      }),
  },
  caddy: goInstalled('caddy', '2.10.2', 'github.com/caddyserver/caddy/v2', 'cmd/caddy'),
  'nats-server': goInstalled('nats-server', '2.15.2', 'github.com/nats-io/nats-server/v2', ''),
  toxiproxy: goInstalled('toxiproxy', '2.5.0', 'github.com/Shopify/toxiproxy/v2', 'cmd/server'),
  'lumio-oldest': ownBuild('lumio-oldest', 'd893b11'),
  'lumio-previous': ownBuild('lumio-previous', previousRelease()),
};

/**
 * Installs missing engines among those named, or among all; returns the version of each. An engine that cannot be
 * installed is an error: a suite that silently did not run would seem to have passed.
 */
export function installEngines(names = Object.keys(ENGINES)) {
  mkdirSync(folder, { recursive: true });
  const versions = {};
  for (const name of names) {
    const engine = ENGINES[name];
    if (!engine.present()) {
      console.error(`lumio: installing ${name} ${engine.version} into ${folder} …`);
      try {
        engine.install();
      } catch (error) {
        throw new Error(`${name} ${engine.version} could not be installed: ${error.message}`, { cause: error });
      }
    }
    versions[name] = engine.version;
  }
  if (versions.redis) versions.redis = /v=([\d.]+)/.exec(answer('redis-server', ['--version']) ?? '')?.[1];
  return versions;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2);
  const versions = installEngines(names.length > 0 ? names : undefined);
  for (const [name, version] of Object.entries(versions)) console.log(`${name} ${version}`);
}
