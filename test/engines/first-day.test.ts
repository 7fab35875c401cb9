import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { testDatabase, type TestDatabase } from '../support/database';
import { PATIENT, startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';
import { hmac } from '../support/webhooks';
import { startCaddy } from './support/caddy';
import { type Kafka, startKafka } from './support/kafka';
import { type Kurrent, startKurrent } from './support/kurrentdb';
import { type Engine, freePort } from './support/process';
import { type RedisServer, startRedis } from './support/redis';
import { type S3Server, startS3 } from './support/s3';

const ROOT = join(__dirname, '../..');
const ROLES = ['api', 'ingest', 'projector', 'realtime', 'worker'] as const;
type Role = (typeof ROLES)[number];

/**
 * `docs/operating/first-day.md` word for word, in a shell, on a system of production: a process of each role under the
 * environment that `docker-compose.yml` gives it from an `.env`, on engines of their own. Docker itself is stood in for
 * by a script.
 */
describe('the first day', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-first-day-'));
  const secret = () => randomBytes(24).toString('hex');
  const filled: Record<string, string> = {
    LUMIO_SECRETS__KEYS: `k1:${randomBytes(32).toString('base64')}`,
    POSTGRES_PASSWORD: secret(),
    VALKEY_PASSWORD: secret(),
    STORAGE_PASSWORD: secret(),
    POSTGRES_ROOT_PASSWORD: secret(),
    STORAGE_ROOT_PASSWORD: secret(),
    LUMIO_WEBHOOKS__TROVO_SECRET: secret(),
  };
  const shop_secret = secret();
  let database: TestDatabase;
  let kafka: Kafka;
  let kurrent: Kurrent;
  let redis: RedisServer;
  let s3: S3Server;
  let caddy: Engine;
  const nodes: Partial<Record<Role, TestServer>> = {};
  let engines: Record<string, string>;

  beforeAll(async () => {
    [database, kafka, kurrent, redis] = await Promise.all([
      testDatabase(2),
      startKafka(),
      startKurrent(),
      startRedis(),
    ]);
    s3 = await startS3(await freePort());
    mkdirSync(s3.folder('lumio-blobs'));
    engines = {
      LUMIO_DATABASE__URL: database.url,
      LUMIO_EVENT_STORE__URL: kurrent.url,
      LUMIO_BROKER__URL: kafka.url,
      LUMIO_REDIS__URL: redis.url,
      LUMIO_BLOBS__URL: s3.url('lumio-blobs'),
    };
    const example = readFileSync(join(ROOT, 'deploy/example.env'), 'utf8');
    mkdirSync(join(folder, 'deploy'));
    writeFileSync(
      join(folder, 'deploy/example.env'),
      example.replace(/^(\w+)=$/gm, (line, name: string) => `${line}${filled[name] ?? ''}`),
    );
    for (const role of ROLES) {
      const data_dir = mkdtempSync(join(tmpdir(), 'lumio-server-'));
      nodes[role] = await startServer({ embedded: true, data_dir, env: environmentOf(role) });
    }
    const portOf = (role: Role) => Number(new URL(nodes[role]!.base_url).port);
    caddy = await startCaddy({ api: [portOf('api')], ingest: [portOf('ingest')], realtime: [portOf('realtime')] });
  });
  afterAll(async () => {
    await caddy?.stop();
    await Promise.all(Object.values(nodes).map((node) => node.dispose()));
    await s3?.stop();
    await redis?.stop();
    kurrent?.stop();
    await kafka?.kill();
    await database?.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  /**
   * What docker compose gives a service from `.env`: values, `${NAME:-…}` filled in, names alone as `.env` has them.
   */
  function environmentOf(service: string): Record<string, string> {
    const env = Object.fromEntries(
      [...readFileSync(join(folder, 'deploy/example.env'), 'utf8').matchAll(/^(\w+)=(.*)$/gm)].map(
        ([, name, value]) => [name!, value!],
      ),
    );
    const compose = parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true });
    const declared = Object.entries(compose.services[service].environment as Record<string, string | null>);
    const given = declared.flatMap(([name, value]): [string, string][] => {
      if (value === null) return env[name] === undefined ? [] : [[name, env[name]]];
      const text = value.replace(
        /\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}/g,
        (_all, key: string, other?: string) => env[key] || (other ?? ''),
      );
      return [[name, text]];
    });
    // Where the engines are, and where this machine may listen, is all that differs.
    const here = {
      LUMIO_HOST: '127.0.0.1',
      LUMIO_PORT: '0',
      LUMIO_METRICS__HOST: '127.0.0.1',
      LUMIO_METRICS__PORT: '0',
    };
    return { ...Object.fromEntries(given), LUMIO_TRUSTED_PROXIES: '127.0.0.1', ...engines, ...here };
  }

  async function shell(text: string): Promise<{ code: number | null; output: string; errors: string }> {
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    const main = join(ROOT, 'dist/bin/main.js');
    writeFileSync(
      join(bin, 'docker'),
      `#!/bin/sh
case "$*" in
  'compose up '*) exit 0 ;;
  'compose run --rm -T migrate '*) shift 5; exec '${process.execPath}' --enable-source-maps '${main}' "$@" ;;
  *) echo "docker $*: not in this script" >&2; exit 64 ;;
esac
`,
    );
    chmodSync(join(bin, 'docker'), 0o755);
    const child = spawn('bash', ['-euo', 'pipefail', '-c', text], {
      cwd: folder,
      env: {
        ...environmentOf('migrate'),
        ...PATIENT,
        PATH: `${bin}:${process.env.PATH}`,
        HOME: folder,
        LUMIO_DATA_DIR: join(folder, 'data'),
        LUMIO_PUBLIC_URL: caddy.url,
        SHOP_SECRET: shop_secret,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const texts = { output: '', errors: '' };
    child.stdout.on('data', (chunk: Buffer) => (texts.output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (texts.errors += chunk.toString()));
    const code = await new Promise<number | null>((done) => child.once('close', done));
    return { code, ...texts };
  }

  test('a signed webhook is posted, and read with the token that was made', async () => {
    const guide = readFileSync(join(ROOT, 'docs/operating/first-day.md'), 'utf8');
    const blocks = [...guide.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block!);
    expect(blocks).toHaveLength(7);
    const script = blocks.join('\n').replaceAll('http://127.0.0.1:8080', caddy.url);
    const { code, output, errors } = await shell(script);
    expect([code, errors.replaceAll(/^ *%.*|^ *Dload.*|.*--:--.*$/gm, '').trim(), output]).toEqual([
      0,
      '',
      expect.any(String),
    ]);
    expect(output).toContain('"status":"healthy"');
    expect(output).toContain('"success":true');
    expect(output).toMatch(/"client_id":"[0-9a-f-]{36}","client_secret":"lm_oauth_[0-9a-f]{64}"/);
    const replaced = /"owner_id":"([0-9a-f-]{36})","former_owner_id":"([0-9a-f-]{36})"/.exec(output)!;

    const token = JSON.parse(readFileSync(join(folder, 'token.json'), 'utf8')) as Record<string, string>;
    const api = new ApiClient(caddy.url, token.access_token!);
    const read = async () => (await api.get('/v1/events')).body.data as { platform: string; type: string }[];
    const [event] = await eventually(async () => {
      const events = await read();
      return events.length > 0 ? events : undefined;
    }, 'the webhook of the guide');
    expect(event).toMatchObject({ platform: 'trovo', type: 'trovo:subscribe' });

    const body = Buffer.from('{"id":820982911946154508,"total_price":"19.90","currency":"EUR"}');
    const order = await fetch(`${caddy.url}/v1/webhooks/shopify`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-shopify-topic': 'orders/create',
        'x-shopify-shop-domain': 'ada.myshopify.com',
        'x-shopify-event-id': 'first-day',
        'x-shopify-hmac-sha256': hmac('sha256', shop_secret, body, 'base64'),
      },
      body,
    });
    expect(order.status).toBe(200);
    await eventually(
      async () => ((await read()).some(({ platform }) => platform === 'shopify') ? true : undefined),
      'the order',
    );
    const { body: members } = await api.get(`/v1/accounts/${token.account_id}/members`);
    const roles = (members.data as { user_id: string; role: { slug: string } }[]).map((one) => [
      one.user_id,
      one.role.slug,
    ]);
    expect(Object.fromEntries(roles)).toEqual({ [replaced[1]!]: 'owner', [token.user_id!]: 'administrator' });
    expect(replaced[2]).toBe(token.user_id);
    const clients = (await api.get('/v1/admin/oauth-clients')).body.data;
    expect(clients).toMatchObject([{ name: 'Stream deck', redirect_uris: ['https://deck.example/callback'] }]);
    const me = await api.get('/v1/tokens/me');
    expect(me.body.data.admin_permissions).toContain('admin:access');
    expect((await fetch(`${caddy.url}/v1/swagger-ui/`)).status).toBe(404);
  });
});
