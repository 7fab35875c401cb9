import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ordinaryUser, type OrdinaryUser } from '../support/ordinary-user';
import { ENGINES } from './support/process';

const ROOT = join(__dirname, '../..');

/** What the installer finds complete it leaves alone: no rights, no compiler and no registry are needed then. */
describe('the installer of the engines, run by an ordinary user', () => {
  let folder: string;
  let user: OrdinaryUser;
  const at = (...path: string[]) => join(folder, ...path);

  beforeAll(() => {
    // It needs node alone; what it runs is copied below.
    user = ordinaryUser('/');
    folder = mkdtempSync(join(tmpdir(), 'lumio-installer-'));
    chmodSync(folder, 0o755);
    cpSync(join(ROOT, 'scripts'), at('scripts'), { recursive: true });
    // Owned by whom the test runs as, and without the notes about versions that earlier installers left.
    for (const name of readdirSync(ENGINES).filter((one) => statSync(join(ENGINES, one)).isDirectory()))
      cpSync(join(ENGINES, name), at('engines', name), { recursive: true });
    // Every program that could install something says so instead.
    mkdirSync(at('programs'));
    for (const name of ['apt-get', 'go', 'mvn', 'python3']) {
      writeFileSync(at('programs', name), `#!/bin/sh\necho "${name} was asked to install" >&2\nexit 1\n`, {
        mode: 0o755,
      });
    }
  });
  afterAll(() => {
    user.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  const install = () => {
    const code = `import(${JSON.stringify(at('scripts/engines/install.mjs'))})
      .then((installer) => console.log(JSON.stringify(installer.installEngines())))`;
    return spawnSync(user.node, ['-e', code], {
      cwd: '/',
      encoding: 'utf8',
      env: { PATH: `${at('programs')}:${process.env.PATH}`, LUMIO_ENGINES_DIR: at('engines') },
      ...user.user,
    });
  };
  const files = () =>
    readdirSync(at('engines'), { recursive: true, encoding: 'utf8' })
      .map((name) => `${name} ${statSync(at('engines', name)).mtimeMs}`)
      .sort();

  test('where all is present it installs nothing, writes nothing, and names the versions', () => {
    const before = files();
    const { status, stdout, stderr } = install();
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ kafka: '4.1.0', versitygw: '1.8.0', toxiproxy: '2.5.0' });
    expect(files()).toEqual(before);
  });

  test.each([
    ['kafka 4.1.0', 'kafka/libs/kafka_2.13-4.1.0.jar', 'kafka/libs/kafka_2.13-4.0.0.jar'],
    ['versitygw 1.8.0', 'versitygw/versitygw', 'versitygw/versitygw'],
    ['schema-registry 1.8.0', 'schema-registry/schema-registry', 'schema-registry/schema-registry'],
    ['fastavro 1.12.1', 'fastavro/fastavro-1.12.1.dist-info', 'fastavro/fastavro-1.12.0.dist-info'],
  ])('another version is not taken for %s, and what cannot be installed is an error', (wanted, file, other) => {
    const kept = at('kept');
    renameSync(at('engines', file), kept);
    try {
      writeFileSync(at('engines', other), 'another version');
      const { status, stderr } = install();
      expect(status).toBe(1);
      expect(stderr).toContain(`installing ${wanted} into`);
      expect(stderr).toContain(`${wanted} could not be installed`);
    } finally {
      rmSync(at('engines', other));
      renameSync(kept, at('engines', file));
    }
  });
});
