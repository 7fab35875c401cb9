// Real engines for test:engines, from package registries alone, at fixed versions, into a folder outside the checkout. What is there is kept.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { root } from '../prepare.mjs';

export const folder = process.env.LUMIO_ENGINES_DIR ?? join(homedir(), '.cache/lumio-engines');

const run = (program, args, options = {}) => execFileSync(program, args, { stdio: ['ignore', 2, 2], ...options });
const answer = (program, args) => {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return status === 0 ? `${stdout}${stderr}` : undefined;
};

function goInstall(module, version, program, name) {
  const target = join(folder, name);
  run('go', ['install', `${module}@v${version}`], { env: { ...process.env, GOBIN: target }, cwd: folder });
  const built = module.split('/').at(-1);
  if (built !== program) renameSync(join(target, built), join(target, program));
}

/** A Debian package, without the server that it would start. */
function aptInstall(name) {
  run('apt-get', ['update', '-q']);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  run('apt-get', ['install', '-y', '-q', '--no-upgrade', '--no-install-recommends', name], { env });
}

const OF_THE_SYSTEM = 'of this Debian';

/** How each engine is installed; `present` says whether the wanted version is there. */
const ENGINES = {
  kafka: {
    version: '4.1.0',
    present: () => existsSync(join(folder, 'kafka/libs/kafka_2.13-4.1.0.jar')),
    install() {
      rmSync(join(folder, 'kafka'), { recursive: true, force: true });
      const pom = join(root, 'test/engines/support/pom.xml');
      const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
      run('mvn', ['-q', '-B', '-f', pom, goal, `-DoutputDirectory=${join(folder, 'kafka/libs')}`]);
    },
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
  versitygw: {
    version: '1.8.0',
    present: () => existsSync(join(folder, 'versitygw/versitygw')),
    install: () => goInstall('github.com/versity/versitygw/cmd/versitygw', '1.8.0', 'versitygw', 'versitygw'),
  },
  'schema-registry': {
    version: 'franz-go srfake 1.8.0',
    present: () => existsSync(join(folder, 'schema-registry/schema-registry')),
    install() {
      const target = join(folder, 'schema-registry/schema-registry');
      run('go', ['build', '-o', target, '.'], { cwd: join(root, 'test/engines/support/schema-registry') });
    },
  },
  fastavro: {
    version: '1.12.1',
    present: () => existsSync(join(folder, 'fastavro/fastavro-1.12.1.dist-info')),
    install() {
      rmSync(join(folder, 'fastavro'), { recursive: true, force: true });
      const options = ['--quiet', '--disable-pip-version-check', '--target', join(folder, 'fastavro')];
      run('python3', ['-m', 'pip', 'install', ...options, 'fastavro==1.12.1']);
    },
  },
  caddy: {
    version: '2.10.2',
    present: () => existsSync(join(folder, 'caddy/caddy')),
    install: () => goInstall('github.com/caddyserver/caddy/v2/cmd/caddy', '2.10.2', 'caddy', 'caddy'),
  },
  toxiproxy: {
    version: '2.5.0',
    present: () => existsSync(join(folder, 'toxiproxy/toxiproxy')),
    install: () => goInstall('github.com/Shopify/toxiproxy/v2/cmd/server', '2.5.0', 'toxiproxy', 'toxiproxy'),
  },
};

/**
 * Installs what is missing of the engines named, or of all; the version of each. An engine that cannot be installed is an error: a suite that silently did not run
 * would look like one that passed.
 */
export function installEngines(names = Object.keys(ENGINES)) {
  mkdirSync(folder, { recursive: true });
  const versions = {};
  for (const name of names) {
    const engine = ENGINES[name];
    const stamp = join(folder, `${name}.version`);
    // What the system has is taken as it is: nothing of it is upgraded, and no rights are needed.
    const known =
      engine.version === OF_THE_SYSTEM || (existsSync(stamp) && readFileSync(stamp, 'utf8') === engine.version);
    if (!known || !engine.present()) {
      console.error(`lumio: installing ${name} ${engine.version} into ${folder} …`);
      try {
        engine.install();
      } catch (error) {
        throw new Error(`${name} ${engine.version} could not be installed: ${error.message}`, { cause: error });
      }
      writeFileSync(stamp, engine.version);
    }
    versions[name] = engine.version;
  }
  if (versions.redis) versions.redis = /v=([\d.]+)/.exec(answer('redis-server', ['--version']) ?? '')?.[1];
  return versions;
}
