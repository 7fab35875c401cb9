import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claimEnvironment, environmentOf } from '../../../engines/postgres/embedded/environment';
import { migrate } from '../../../engines/postgres/migrate';
import { SettingsError } from '../../../kernel/settings/error';
import { MIGRATIONS } from '../../../migrations';
import { asQueryable } from '../../../engines/postgres/pool';
import { emptyDatabase, type TestDatabase, testDatabase } from '../../support/database';
import { freePort } from '../../engines/support/process';
import { refused } from '../../support/realtime';
import { runLumio, settingsOf, spawnLumio, startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';

const secrets = { LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}` };

/** Starts with `--adopt`, waits until it serves, and hands it to `work`. */
async function adopting(env: Record<string, string>, work: (base_url: string) => Promise<void>): Promise<void> {
  const child = spawnLumio(['start', '--adopt'], env);
  const ended = new Promise<number | null>((done) => child.once('exit', done));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  try {
    const base_url = await eventually(
      async () => /lumio ready at (http:\S+)/.exec(output)?.[1] ?? (child.exitCode === null ? undefined : output),
      'the start',
    );
    expect(base_url).toMatch(/^http:/);
    await work(base_url);
  } finally {
    child.kill('SIGTERM');
  }
  expect(await ended).toBe(0);
}

const environmentIn = async ({ db }: TestDatabase) =>
  (await db.query(`select value from installation where name = 'environment'`)).map(({ value }) => value as string);

/** Lines that a command has printed, and how it ended. */
function started(args: readonly string[], env: Record<string, string>) {
  const child = spawnLumio(args, env);
  const life = { output: '', code: undefined as number | null | undefined, end: () => child.kill('SIGTERM') };
  child.stdout.on('data', (chunk: Buffer) => (life.output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (life.output += chunk.toString()));
  const ended = new Promise<number | null>((done) => child.once('close', done)).then((code) => (life.code = code));
  return Object.assign(life, { ended });
}

/** What a TCP connection to a port of this machine ends with. */
const connecting = (port: number) =>
  new Promise<string>((done) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      done('open');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => done(error.code!));
  });

describe('a database belongs to the environment of its first start', () => {
  test('--adopt takes the demo keys away before its port is open', async () => {
    const server = await startServer({ env: secrets });
    const database = server.database!;
    const blocker = await database.db.pool.connect();
    try {
      const { credentials } = server;
      const owner = new ApiClient(server.base_url, credentials.access_token);
      await owner.send('POST', '/v1/overlays', {});
      await owner.send('POST', '/v1/widgets', { type: 'text' });
      await server.stop();
      const port = await freePort();
      // The last thing that the removal deletes is held here, so that the start stands still within it.
      await blocker.query('begin');
      await blocker.query(`select 1 from installation where name = 'demo' for update`);
      const adopting = started(['start', '--adopt'], { ...server.env, LUMIO_ENV: 'production', LUMIO_PORT: `${port}` });
      try {
        await eventually(async () => {
          const [waiting] = await database.db.query(
            `select 1 from pg_stat_activity
                where datname = current_database() and wait_event_type = 'Lock' and query ilike 'delete from installation%'`,
          );
          return waiting ?? (adopting.code === undefined ? undefined : adopting.output);
        }, 'the removal');
        expect(adopting.output).toBe('');
        expect(await connecting(port)).toBe('ECONNREFUSED');
        await blocker.query('rollback');
        await eventually(async () => adopting.output.includes('lumio ready at') || undefined, 'the start');
        expect(await connecting(port)).toBe('open');
        const headers = { authorization: `Bearer ${credentials.system_key}` };
        expect((await fetch(`http://127.0.0.1:${port}/v1/events`, { headers })).status).toBe(401);
        const tokens = 'select id from overlay_tokens union all select id from widget_tokens';
        await eventually(async () => (await database.db.query(tokens)).length === 0 || undefined, 'the end of tokens');
      } finally {
        adopting.end();
      }
      expect(await adopting.ended).toBe(0);
    } finally {
      blocker.release(true);
      await server.dispose();
    }
  });

  test('of two first starts that race for a new one, the second to write is refused, and waits for how the first ends', async () => {
    for (const outcome of ['commit', 'rollback'] as const) {
      const database = await testDatabase(4);
      const first = await database.db.pool.connect();
      try {
        await first.query('begin');
        await claimEnvironment(asQueryable(first), 'production');
        const second = claimEnvironment(database.db, 'development').then(
          () => 'claimed',
          (error: unknown) => error,
        );
        await eventually(
          async () =>
            (await database.db.query(`select 1 from pg_locks where not granted`)).length > 0 ? true : undefined,
          'the second to wait',
        );
        await first.query(outcome);
        const found = await second;
        const refused = outcome === 'commit';
        expect(found instanceof SettingsError).toBe(refused);
        expect(String(found)).toMatch(
          refused ? /LUMIO_ENV: is development, and the database is one of prod/ : /^claimed$/,
        );
        expect(await environmentIn(database)).toEqual([refused ? 'production' : 'development']);
        // Its own environment may come again, and as often as it likes.
        await claimEnvironment(database.db, refused ? 'production' : 'development');
      } finally {
        first.release();
        await database.drop();
      }
    }
  });

  test('a database that a killed first start left between two steps belongs to nobody', async () => {
    const database = await emptyDatabase();
    try {
      for (const { name } of MIGRATIONS.slice(0, 7)) {
        expect(await environmentOf(database.db)).toBeNull();
        await migrate(database.url, { only: [name] });
      }
      await migrate(database.url);
      expect(await environmentOf(database.db)).toBeNull();
    } finally {
      await database.drop();
    }
  });

  test('two processes that start on a new one at once: one serves, the other ends with its line and leaves nothing', async () => {
    const database = await emptyDatabase();
    const folders = [0, 1].map(() => mkdtempSync(join(tmpdir(), 'lumio-claim-')));
    const env = (which: 0 | 1) => ({
      ...secrets,
      ...settingsOf(folders[which]!),
      LUMIO_DATABASE__URL: database.url,
      LUMIO_ENV: (['production', 'development'] as const)[which],
    });
    const starts = [started(['start'], env(0)), started(['start'], env(1))] as const;
    try {
      await eventually(
        async () => starts.every((one) => one.code !== undefined || one.output.includes('lumio ready at')) || undefined,
        'both to be decided',
      );
      const serving = starts.filter((one) => one.code === undefined);
      expect(serving).toHaveLength(1);
      const winner = starts.indexOf(serving[0]!);
      const loser = starts[1 - winner]!;
      expect(loser).toMatchObject({ code: 1, output: expect.stringMatching(/^lumio: LUMIO_ENV: is [^\n]*\n$/) });
      expect(await environmentIn(database)).toEqual([winner === 0 ? 'production' : 'development']);
      const demo = await database.db.query(`select 1 from installation where name = 'demo'`);
      expect(demo).toHaveLength(winner);
    } finally {
      for (const one of starts) one.end();
      await Promise.all(starts.map((one) => one.ended));
      await database.drop();
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    }
  });

  test('production refuses one of development, and with --adopt leaves nothing of the demo that opens anything', async () => {
    const server: TestServer = await startServer({ env: secrets });
    const database = server.database!;
    try {
      expect(await environmentIn(database)).toEqual(['development']);
      const { credentials } = server;
      const before = new ApiClient(server.base_url, credentials.access_token);
      const made = await before.send('POST', '/v1/api-keys', { label: 'Own', permissions: ['events:read'] });
      const keys = [credentials.user_api_key, credentials.system_key, made.body.data.key as string];
      const tokens = [credentials.access_token, credentials.other.access_token];
      await server.stop();
      const production = { ...server.env, LUMIO_ENV: 'production' };

      const { code, stdout, stderr } = await runLumio(['start'], production);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(
        /^lumio: LUMIO_ENV: is production, and the database is one of development[^\n]*--adopt[^\n]*\n$/,
      );

      for (let round = 0; round < 2; round += 1) {
        await adopting(production, async (base_url) => {
          for (const secret of [...keys, ...tokens]) {
            const headers = { authorization: `Bearer ${secret}`, 'x-lumio-account': credentials.account_id };
            expect((await fetch(`${base_url}/v1/events`, { headers })).status).toBe(401);
          }
          const ws_url = `${base_url.replace(/^http/, 'ws')}/v1/ws`;
          expect((await refused(`${ws_url}?token=${credentials.access_token}`)).status).toBe(401);
          const refresh = await fetch(`${base_url}/v1/auth/refresh`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ refresh_token: credentials.refresh_token }),
          });
          expect(refresh.status).toBe(401);
        });
      }
      expect(await environmentIn(database)).toEqual(['production']);
      const left = `
        select (select count(*)::int from installation where name = 'demo') as plans,
               (select count(*)::int from connection_secrets) as secrets,
               (select count(*)::int from sessions) as sessions,
               (select count(*)::int from profiles) as profiles`;
      expect(await database.db.query(left)).toEqual([{ plans: 0, secrets: 0, sessions: 0, profiles: 0 }]);
      for (const file of ['dev-credentials.json', 'dev-secrets.json']) {
        expect(existsSync(join(server.data_dir, file))).toBe(false);
      }
    } finally {
      await server.dispose();
    }
  });

  test('development refuses one of production before it changes anything, and takes it with --adopt', async () => {
    const server = await startServer({ env: { ...secrets, LUMIO_ENV: 'production' } });
    const database = server.database!;
    try {
      expect(await environmentIn(database)).toEqual(['production']);
      await server.stop();
      const development = { ...server.env, LUMIO_ENV: 'development' };
      const { code, stderr } = await runLumio(['start'], development);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^lumio: LUMIO_ENV: is development, and the database is one of production[^\n]*\n$/);
      expect(await database.db.query('select 1 from users')).toEqual([]);
      expect(existsSync(join(server.data_dir, 'dev-secrets.json'))).toBe(false);
      await adopting(development, async () => undefined);
      expect(await environmentIn(database)).toEqual(['development']);
    } finally {
      await server.dispose();
    }
  });

  test('one from before is judged by its demo data', async () => {
    const server = await startServer({ env: secrets });
    const database = server.database!;
    try {
      await server.stop();
      const forget = (name: string) => database.db.query('delete from installation where name = $1', [name]);
      await forget('environment');
      const production = { ...server.env, LUMIO_ENV: 'production' };
      expect((await runLumio(['start'], production)).stderr).toMatch(/the database is one of development/);
      await forget('environment');
      await forget('demo');
      expect((await runLumio(['start'], server.env)).stderr).toMatch(/the database is one of production/);
    } finally {
      await server.dispose();
    }
  });
});
