import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { ownerFor } from '../../engines/postgres/embedded/run-as';
import { runLumio, settingsOf, startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';

const PROGRAMS = '/usr/lib/postgresql/15/bin';

/** Starts a PostgreSQL of an older major version on a Unix socket, with the role and database of the compose file. */
async function startOlder(folder: string): Promise<{ url: string; stop(): Promise<void> }> {
  const cluster = join(folder, 'older');
  mkdirSync(cluster, { mode: 0o700 });
  const owner = ownerFor();
  if (owner) {
    chownSync(folder, owner.uid, owner.gid);
    chownSync(cluster, owner.uid, owner.gid);
  }
  const as = { ...owner, cwd: '/', stdio: 'ignore' as const };
  execFileSync(
    join(PROGRAMS, 'initdb'),
    ['-D', cluster, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8'],
    as,
  );
  const server = spawn(join(PROGRAMS, 'postgres'), ['-D', cluster, '-k', cluster, '-c', 'listen_addresses='], as);
  const ended = new Promise((done) => server.once('exit', done));
  await eventually(async () => {
    const client = new pg.Client({ host: cluster, user: 'postgres', database: 'postgres' });
    try {
      await client.connect();
      return true;
    } catch {
      return undefined;
    } finally {
      await client.end();
    }
  }, 'the older PostgreSQL');
  execFileSync(join(__dirname, '../../deploy/database-role.sh'), {
    env: { PATH: `${PROGRAMS}:${process.env.PATH}`, PGHOST: cluster, LUMIO_PASSWORD: "a'quoted one" },
  });
  return {
    url: `postgresql://lumio@localhost/lumio?host=${encodeURIComponent(cluster)}`,
    async stop() {
      server.kill('SIGINT');
      await ended;
    },
  };
}

/** The role that a connection has, what it may do, and who owns its database. */
async function rightsOf(url: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(
    `select r.rolname as role, pg_get_userbyid(d.datdba) as owner, rolsuper, rolcreatedb, rolcreaterole, rolreplication
     from pg_roles r, pg_database d where r.rolname = current_user and d.datname = current_database()`,
  );
  await client.end();
  return rows[0];
}

/**
 * A backup is logical: it carries the data from one major version of PostgreSQL to the next, where a data folder itself
 * cannot go.
 */
test('a backup taken on PostgreSQL 15 is restored into the embedded PostgreSQL, and goes on there', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-major-'));
  const keys = { LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}` };
  const older = await startOlder(folder);
  let server: TestServer | undefined;
  let newer: TestServer | undefined;
  try {
    expect(await rightsOf(older.url)).toEqual({
      role: 'lumio',
      owner: 'lumio',
      rolsuper: false,
      rolcreatedb: false,
      rolcreaterole: false,
      rolreplication: false,
    });
    const env = { ...keys, LUMIO_DATABASE__URL: older.url };
    server = await startServer({ env });
    const vendors = new VendorCloud(server.base_url, server.credentials);
    for (let n = 1; n <= 10; n += 1) expect((await vendors.kickFollow(n, `delivery-${n}`)).status).toBe(200);
    const all = (of: TestServer, count: number) =>
      eventually(async () => {
        const rows = await new ApiClient(of.base_url, of.credentials.access_token).allEvents();
        return rows.length === count ? rows : undefined;
      }, `${count} events`);
    const before = await all(server, 10);
    const settings = { ...settingsOf(server.data_dir), ...env };
    const backup = mkdtempSync(join(folder, 'backup-'));
    expect(await runLumio(['backup', join(backup, 'data')], settings)).toMatchObject({ code: 0 });
    expect(await runLumio(['keys', 'export', join(backup, 'keys.json')], settings)).toMatchObject({ code: 0 });
    await server.stop();

    const data_dir = join(backup, 'newer');
    const target = { ...settingsOf(data_dir), ...keys };
    const restored = await runLumio(['restore', join(backup, 'data'), '--keys', join(backup, 'keys.json')], target);
    expect(restored).toMatchObject({ code: 0 });
    newer = await startServer({ embedded: true, data_dir, env: keys });
    expect(await all(newer, 10)).toEqual(before);
    const clouds = new VendorCloud(newer.base_url, newer.credentials);
    for (let n = 1; n <= 11; n += 1) expect((await clouds.kickFollow(n, `delivery-${n}`)).status).toBe(200);
    expect(await all(newer, 11)).toHaveLength(11);
  } finally {
    await newer?.dispose();
    await server?.dispose();
    await older.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
