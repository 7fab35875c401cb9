import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestDatabase } from '../support/database';
import { refused } from '../support/realtime';
import { runLumio, spawnLumio, startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';

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
      60_000,
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

describe('a database belongs to the environment of its first start', () => {
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
