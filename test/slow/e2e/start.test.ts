import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { emptyDatabase } from '../../support/database';
import { ordinaryUser } from '../../support/ordinary-user';
import { slowness } from '../../support/patience';
import { Client } from '../../support/realtime';
import { runLumio, settingsOf, startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually, VendorCloud } from '../../support/vendor-cloud';

const folders: string[] = [];
const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'lumio-start-'));
  folders.push(made);
  return made;
};
afterAll(() => folders.forEach((made) => rmSync(made, { recursive: true, force: true })));

/** One line for the person who reads it: what is wrong, and nothing of our insides. */
function oneLine(stderr: string): string {
  const lines = stderr.trimEnd().split('\n');
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^lumio: \S/);
  expect(lines[0]).not.toMatch(/\bat .*:\d+:\d+/);
  return lines[0]!;
}

describe('a start that is refused says why in one line and ends with 1', () => {
  test.each<[Record<string, string>, RegExp]>([
    [{ LUMIO_NONSENSE: '1' }, /LUMIO_NONSENSE .*unknown setting/],
    [{ LUMIO_WEBHOOKS__KICK_SECRETS: 'x' }, /LUMIO_WEBHOOKS__KICK_SECRETS .*unknown setting/],
    [{ LUMIO_PORT__X: '1' }, /LUMIO_PORT/],
    [{ LUMIO_PORT: '70000' }, /LUMIO_PORT /],
    [{ LUMIO_PORT: 'http' }, /LUMIO_PORT /],
    [{ LUMIO_ENV: 'staging' }, /LUMIO_ENV /],
    [{ LUMIO_HOST: '0.0.0.0' }, /LUMIO_ENV: must be set/],
    [{ LUMIO_ROLES: 'api,cook' }, /LUMIO_ROLES/],
    [{ LUMIO_ROLES: 'api' }, /LUMIO_REDIS__URL /],
    [{ LUMIO_AUTH__ACCESS_TOKEN_EXPIRATION: 'soon' }, /LUMIO_AUTH__ACCESS_TOKEN_EXPIRATION /],
    [{ LUMIO_DATABASE__URL: 'postgresql://127.0.0.1:1/x' }, /LUMIO_SECRETS__KEYS /],
    [{ LUMIO_SECRETS__KEYS: 'short:AAAA' }, /LUMIO_SECRETS__KEYS|secrets\.keys/],
    [{ LUMIO_WEBHOOKS__KICK_PUBLIC_KEY: 'no key' }, /webhooks\.kick_public_key|LUMIO_WEBHOOKS__KICK_PUBLIC_KEY/],
    [{ LUMIO_LOG_LEVEL: 'loud' }, /LUMIO_LOG_LEVEL /],
  ])('%j', async (env, line) => {
    const data_dir = folder();
    const { code, stdout, stderr } = await runLumio(['start'], { ...settingsOf(data_dir), ...env });
    expect(oneLine(stderr)).toMatch(line);
    expect([code, stdout]).toEqual([1, '']);
    expect(existsSync(join(data_dir, 'lumio.lock'))).toBe(false);
  });

  test('a database that does not answer, or refuses the login or the name, and never the password', async () => {
    const database = await emptyDatabase();
    const wrong = database.url.replace(/\/lumio_test_\w+\?/, '/lumio_nowhere?');
    const stranger = database.url.replace(/\/\/\w+@/, '//stranger:hidden@');
    const cases: [string, RegExp][] = [
      ['postgresql://lumio:hidden@127.0.0.1:9/lumio', /ECONNREFUSED 127\.0\.0\.1:9/],
      ['postgresql://lumio:hidden@localhost:9/lumio', /ECONNREFUSED/],
      ['postgresql://lumio:hidden@nowhere.invalid/lumio', /nowhere\.invalid/],
      [wrong, /"lumio_nowhere" does not exist/],
      [stranger, /"stranger" does not exist/],
    ];
    try {
      for (const [url, line] of cases) {
        const ended = (command: string) =>
          runLumio([command], {
            ...settingsOf(folder()),
            LUMIO_DATABASE__URL: url,
            LUMIO_SECRETS__KEYS: `a:${Buffer.alloc(32, 1).toString('base64')}`,
          });
        for (const { code, stderr } of await Promise.all([ended('start'), ended('migrate')])) {
          const said = oneLine(stderr);
          expect(said).toMatch(/^lumio: LUMIO_DATABASE__URL \(database\.url\): /);
          expect(said).toMatch(line);
          expect(said).not.toContain('hidden');
          expect(code).toBe(1);
        }
      }
    } finally {
      await database.drop();
    }
  });

  test('a port that somebody has', async () => {
    const holder = createServer();
    await new Promise<void>((listening) => holder.listen(0, '127.0.0.1', listening));
    const port = String((holder.address() as AddressInfo).port);
    for (const name of ['LUMIO_PORT', 'LUMIO_METRICS__PORT']) {
      const { code, stderr } = await runLumio(['start'], { ...settingsOf(folder()), [name]: port });
      expect(oneLine(stderr)).toMatch(new RegExp(`127\\.0\\.0\\.1:${port} .*in use.*${name}`));
      expect(code).toBe(1);
    }
    await new Promise((closed) => holder.close(closed));
  });
});

describe('one server on its own PostgreSQL', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ embedded: true });
  });
  afterAll(() => server?.dispose());

  test('dev-credentials.json is for its owner alone, and whole', async () => {
    const path = join(server.data_dir, 'dev-credentials.json');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(server.data_dir, 'secrets.keys')).mode & 0o777).toBe(0o600);
    const text = expect.stringMatching(/./);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
      base_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      ws_url: expect.stringMatching(/^ws:\/\/127\.0\.0\.1:\d+\/v1\/ws$/),
      metrics_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/),
      account_id: text,
      user_id: text,
      access_token: text,
      refresh_token: text,
      user_api_key: text,
      system_key: text,
      connections: {
        twitch: { platform_channel_id: text },
        youtube: { platform_channel_id: text },
        kick: { platform_channel_id: text },
        trovo: { platform_channel_id: text },
        shopify: { shop_domain: text },
      },
      webhook_signing: {
        youtube_secret: text,
        kick_private_key: expect.stringMatching(/^-----BEGIN PRIVATE KEY-----/),
        kick_secret: text,
        trovo_secret: text,
        shopify_secret: text,
        stripe_secret: text,
        stripe_connect_secret: text,
      },
      other: { account_id: text, user_id: text, access_token: text },
    });
    for (const token of [server.credentials.access_token, server.credentials.user_api_key]) {
      expect((await new ApiClient(server.base_url, token).get('/v1/events')).status).toBe(200);
    }
    const { system_key, account_id } = server.credentials;
    const headers = { authorization: `Bearer ${system_key}`, 'x-lumio-account': account_id };
    expect((await fetch(`${server.base_url}/v1/events`, { headers })).status).toBe(200);
  });

  test('health covers every engine', async () => {
    const { data } = (await (await fetch(`${server.base_url}/v1/health`)).json()) as { data: any };
    const names = ['database', 'timeseries', 'cache', 'broker', 'event_store', 'blobs'];
    const up = { status: 'healthy', latency_ms: expect.any(Number) };
    expect(data.services).toEqual(Object.fromEntries(names.map((name) => [name, up])));
  });

  test('a second start on its folder is refused, and the first goes on', async () => {
    const { code, stderr } = await runLumio(['start'], settingsOf(server.data_dir));
    expect(oneLine(stderr)).toContain(`another lumio (pid ${server.pid}) is running on ${server.data_dir}`);
    expect(code).toBe(1);
    expect((await fetch(`${server.base_url}/v1/health`)).status).toBe(200);
  });

  test('commands work beside the running server, and on a stopped one’s folder', async () => {
    const vendors = new VendorCloud(server.base_url, server.credentials);
    const api = new ApiClient(server.base_url, server.credentials.access_token);
    for (const user_id of [1, 2, 3]) expect((await vendors.kickFollow(user_id)).status).toBe(200);
    const before = await eventually(async () => {
      const all = await api.allEvents();
      return all.length === 3 ? all : undefined;
    }, 'three events');
    const env = settingsOf(server.data_dir);
    const rebuilt = await runLumio(['rebuild', 'event-log'], env);
    expect([rebuilt.code, rebuilt.stdout]).toEqual([0, expect.stringMatching(/^event-log: 3 records in [\d.]+ s\n$/)]);
    expect(await api.allEvents()).toEqual(before);
    expect(await runLumio(['dead-letters', 'list'], env)).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(await runLumio(['migrate'], env)).toMatchObject({ code: 0, stdout: 'the schema is up to date\n' });
    expect((await vendors.kickFollow(4)).status).toBe(200);
    await eventually(
      async () => ((await api.allEvents()).length === 4 ? true : undefined),
      'an event after the rebuild',
    );

    expect(await server.stop()).toBe(0);
    const stopped = await runLumio(['rebuild', 'event-log', '--quiet'], env);
    expect([stopped.code, stopped.stdout, stopped.stderr]).toEqual([
      0,
      expect.stringMatching(/^event-log: 4 records in [\d.]+ s\n$/),
      '',
    ]);
    expect(await runLumio(['dead-letters', 'list'], env)).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(existsSync(join(server.data_dir, 'lumio.lock'))).toBe(false);
    server = await server.restart();
    expect(await new ApiClient(server.base_url, server.credentials.access_token).allEvents()).toHaveLength(4);
  });

  test('a PostgreSQL that a killed process left behind is taken over', async () => {
    const pid_file = join(server.data_dir, 'postgres/postmaster.pid');
    const left = Number(readFileSync(pid_file, 'utf8').split('\n')[0]);
    await server.kill();
    expect(runs(left)).toBe(true);
    server = await server.restart();
    expect(runs(left)).toBe(false);
    expect(Number(readFileSync(pid_file, 'utf8').split('\n')[0])).not.toBe(left);
  });

  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s under load: what is under way is answered, sockets close 1012, exit 0',
    async (signal) => {
      const load = flood(server);
      const socket = await Client.open(server.ws_url, server.credentials.access_token);
      await socket.subscribe(`events:${server.credentials.account_id}`);
      await eventually(async () => (load.answered() > 300 ? true : undefined), 'the load');
      const asked = Date.now();
      const code = await server.stop(signal);
      const ended_after_ms = Date.now() - asked;
      const { acked, others, cut } = await load.end();
      const left = ['lumio.lock', 'postgres/postmaster.pid'].filter((file) => existsSync(join(server.data_dir, file)));
      const output = server.output();
      server = await server.restart();

      expect(code).toBe(0);
      expect(ended_after_ms).toBeLessThan(10_000 * slowness());
      expect(await socket.closed()).toBe(1012);
      // Each request was answered, or found the port closed: none was taken and then dropped.
      expect([...others].filter((outcome) => outcome !== 'ECONNREFUSED' && outcome !== 503)).toEqual([]);
      expect(left).toEqual([]);
      expect(output).not.toMatch(/"level":"(error|fatal)"|DeprecationWarning/);
      const api = new ApiClient(server.base_url, server.credentials.access_token);
      const stored = await eventually(async () => {
        const ids = new Set((await api.allEvents('&types=trovo:spell')).map((event) => event.external_id as string));
        return acked.every((id) => ids.has(`trovo:${id}`)) ? ids : undefined;
      }, 'all that was acknowledged');
      expect(stored.size).toBeGreaterThanOrEqual(acked.length);
      // A connection that was quiet for too long may be closed as a client sends its next: that one must not count.
      expect(cut.filter((id) => stored.has(`trovo:${id}`))).toEqual([]);
    },
  );
});

describe('anywhere, and as anyone', () => {
  test('a long path below a folder that only its owner may enter', async () => {
    const closed = folder();
    chmodSync(closed, 0o700);
    const data_dir = join(closed, 'a-folder-with-quite-a-long-name-'.repeat(4), 'and another, with spaces ü');
    mkdirSync(data_dir, { recursive: true });
    const sockets = () => readdirSync(tmpdir()).filter((name) => /^lumio-[0-9a-f]{16}$/.test(name));
    const before = sockets();
    const server = await startServer({ embedded: true, data_dir });
    try {
      const health = (await (await fetch(`${server.base_url}/v1/health`)).json()) as { data: { status: string } };
      expect(health.data.status).toBe('healthy');
      const env = settingsOf(data_dir);
      expect(await runLumio(['dead-letters', 'list'], env)).toEqual({ code: 0, stdout: '', stderr: '' });
      // Such a path is too long for a socket, which lies elsewhere, as long as it is of use.
      expect(sockets()).toHaveLength(before.length + 1);
    } finally {
      await server.dispose();
    }
    expect(sockets()).toEqual(before);
  });

  test('an ordinary user', async () => {
    const ordinary = ordinaryUser(join(__dirname, '../../..'));
    const server = await startServer({ embedded: true, user: ordinary.user, program: ordinary });
    try {
      const api = new ApiClient(server.base_url, server.credentials.access_token);
      expect((await api.get('/v1/events')).status).toBe(200);
      expect(ordinary.uid).not.toBe(0);
      const owners = ['lumio.lock', 'postgres', 'secrets.keys'].map(
        (name) => statSync(join(server.data_dir, name)).uid,
      );
      expect(owners).toEqual([ordinary.uid, ordinary.uid, ordinary.uid]);
    } finally {
      await server.dispose();
      ordinary.dispose();
    }
  });
});

describe('the command', () => {
  /** Names below a help text's `Commands:`. */
  const namesIn = (help: string): string[] =>
    [...help.slice(help.indexOf('Commands:')).matchAll(/^ {2}([a-z-]+)/gm)]
      .map(([, name]) => name!)
      .filter((name) => name !== 'help');

  async function helpOf(command: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runLumio([...command, '--help']);
    expect([command, code, stderr]).toEqual([command, 0, '']);
    expect(stdout).toContain(`Usage: ${['lumio', ...command].join(' ')}`);
    return stdout;
  }

  test('--help lists the commands of docs/operating/commands.md, and each command and subcommand has its own', async () => {
    const commands = namesIn(await helpOf([]));
    const page = readFileSync(join(__dirname, '../../../docs/operating/commands.md'), 'utf8');
    const rows = page.split('\n').filter((line) => line.startsWith('| `lumio '));
    const told = rows
      .flatMap((line) => [...line.split('|')[1]!.matchAll(/`(?:lumio )?([a-z-]+)/g)])
      .map(([, name]) => name);
    expect(told.sort()).toEqual([...commands].sort());
    const groups = ['admin', 'audit', 'dead-letters', 'jobs', 'parked-webhooks', 'keys', 'backup'];
    for (const command of commands) {
      const help = await helpOf([command]);
      const inner = help.includes('Commands:') ? namesIn(help) : [];
      expect([command, inner.length > 0]).toEqual([command, groups.includes(command)]);
      await Promise.all(inner.map((name) => helpOf([command, name])));
    }
    expect(await runLumio(['--version'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    });
  });

  test.each([
    [['nonsense']],
    [['start', '--nonsense']],
    [['start', 'nonsense']],
    [['rebuild']],
    [['rebuild', 'event-log', '--batch', '0']],
    [['dead-letters', 'list', '--status', 'odd']],
    [['dead-letters', 'show', 'x']],
    [['dead-letters', 'nonsense']],
    [['demo', '--rate', '-1']],
  ])('%j is wrong usage: 2, and one line', async (args) => {
    const { code, stdout, stderr } = await runLumio(args, settingsOf(folder()));
    expect([code, stdout]).toEqual([2, '']);
    oneLine(stderr.replace(/\n\(Did you mean .*\)\n$/, '\n'));
  });

  test('without a command it shows its help and ends with 2', async () => {
    for (const args of [[], ['dead-letters']]) {
      const { code, stderr } = await runLumio(args);
      expect([code, stderr]).toEqual([2, expect.stringContaining('Usage: lumio')]);
    }
  });

  test('what cannot be done is 1, and one line', async () => {
    const server = await startServer();
    try {
      const env = {
        ...settingsOf(server.data_dir),
        LUMIO_DATABASE__URL: server.database!.url,
        LUMIO_SECRETS__KEYS: `a:${Buffer.alloc(32, 1).toString('base64')}`,
      };
      for (const [args, line] of [
        [['rebuild', 'nothing', '--quiet'], /nothing/],
        [['dead-letters', 'show', '999'], /there is no dead letter 999/],
        [['dead-letters', 'drop', '999'], /999/],
      ] as const) {
        const { code, stdout, stderr } = await runLumio(args, env);
        expect([code, stdout]).toEqual([1, '']);
        expect(oneLine(stderr)).toMatch(line);
      }
      const by_port = await runLumio(['health'], { LUMIO_PORT: new URL(server.base_url).port });
      expect(by_port).toEqual({ code: 0, stdout: 'healthy\n', stderr: '' });
      const by_folder = await runLumio(['health'], { LUMIO_DATA_DIR: server.data_dir, LUMIO_PORT: '9' });
      expect(by_folder).toEqual({ code: 0, stdout: 'healthy\n', stderr: '' });
    } finally {
      await server.dispose();
    }
    const nobody_there = await runLumio(['health'], { LUMIO_PORT: '9' });
    expect(nobody_there.code).toBe(1);
    expect(oneLine(nobody_there.stderr)).toMatch(/127\.0\.0\.1:9/);
  });
});

/** Signed webhooks, 16 at once, until told to end. */
function flood(server: TestServer) {
  const vendors = new VendorCloud(server.base_url, server.credentials);
  const acked: string[] = [];
  const others = new Set<string | number>();
  /** Sent, and the connection ended without an answer. */
  const cut: string[] = [];
  let ended = false;
  let number = 0;
  const lane = async () => {
    while (!ended) {
      const id = `${server.pid}-${(number += 1)}`;
      try {
        const { status } = await vendors.trovo({ type: 'channel.spell', message_id: id });
        if (status === 200) acked.push(id);
        else others.add(status);
        if (status !== 200) return;
      } catch (error) {
        const { cause } = error as { cause?: { code?: string } };
        if (cause?.code === 'UND_ERR_SOCKET') cut.push(id);
        else others.add(cause?.code ?? String(error));
        return;
      }
    }
  };
  const lanes = Promise.all(Array.from({ length: 16 }, lane));
  return {
    answered: () => acked.length,
    async end() {
      ended = true;
      await lanes;
      return { acked, others, cut };
    },
  };
}

/** An ended process that nobody has waited for yet (a container without an init) does not run any more. */
function runs(pid: number): boolean {
  const stat = `/proc/${pid}/stat`;
  return existsSync(stat) && !/\) [ZX] /.test(readFileSync(stat, 'utf8'));
}
