import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { driveAllDoors } from '../../support/all-doors';
import { emptyDatabase, type TestDatabase } from '../../support/database';
import { runLumio, settingsOf, spawnLumio, startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually, VendorCloud } from '../../support/vendor-cloud';

/** What an operator does: back up a running Lumio, erase a person, lose the database, restore, go on. */
describe('backup and restore by the command line', () => {
  let folder: string;
  let server: TestServer;
  let fresh: TestDatabase;
  let again: TestServer | undefined;
  let env: Record<string, string>;
  let shared: Record<string, string>;
  const path = (name: string) => join(folder, name);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'lumio-backup-e2e-'));
    shared = {
      LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
      LUMIO_BLOBS__URL: path('blobs'),
    };
    server = await startServer({ env: shared });
    env = { ...settingsOf(server.data_dir), ...shared, LUMIO_DATABASE__URL: server.database!.url };
    fresh = await emptyDatabase();
  });
  afterAll(async () => {
    await again?.dispose();
    await server?.dispose();
    await fresh?.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  const lumio = async (...args: string[]) => {
    const result = await runLumio(args, env);
    return { ...result, stdout: result.stdout.trim() };
  };

  test('a backup of a running server is restored elsewhere: nothing lost, nothing twice, the erased stay erased', async () => {
    const vendors = new VendorCloud(server.base_url, server.credentials);
    const api = new ApiClient(server.base_url, server.credentials.access_token);
    for (let n = 1; n <= 20; n += 1) expect((await vendors.kickFollow(1000 + n, `delivery-${n}`)).status).toBe(200);
    const all = (client: ApiClient, count: number) =>
      eventually(async () => {
        const rows = await client.allEvents();
        return rows.length === count ? rows : undefined;
      }, `${count} events`);
    await all(api, 20);

    expect(await lumio('backup', path('backup'))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/\d+ tables, \d+ rows/),
    });
    expect(await lumio('backup', path('backup'))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/lies there already/),
    });
    expect(await lumio('backup', 'verify', path('backup'))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/sound/),
    });
    expect(await lumio('keys', 'export', path('keys.json'))).toMatchObject({ code: 0 });
    expect(statSync(path('keys.json')).mode & 0o777).toBe(0o600);
    expect(await lumio('backup', 'blob:nightly')).toMatchObject({ code: 0 });
    expect(await lumio('backup', 'verify', 'blob:nightly')).toMatchObject({ code: 0 });
    // After both were taken: a person is erased.
    expect(await lumio('erase', 'kick:1003')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/1 keys destroyed, 1 records, 1 rows/),
    });
    // A user of the first life, without a profile in the second.
    const { user_id: other } = server.credentials.other;
    for (const said of ['profile erased', 'nothing is left to erase'])
      expect(await lumio('erase', `user:${other}`)).toMatchObject({ code: 0, stdout: `user:${other}: ${said}` });
    const before = await all(api, 20);
    expect(before.filter(({ raw }: { raw: unknown }) => raw === '[erased]')).toHaveLength(1);
    await server.stop();

    const restored_env = { ...settingsOf(path('data')), ...shared, LUMIO_DATABASE__URL: fresh.url };
    const restore = await runLumio(['restore', path('backup'), '--keys', path('keys.json')], restored_env);
    expect(restore).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/1 erased and left out[^]*event-log: 20 records, 0 parked/),
    });
    expect((await runLumio(['restore', path('backup')], restored_env)).stderr).toMatch(/not empty/);

    again = await startServer({ env: { ...shared, LUMIO_DATABASE__URL: fresh.url } });
    const client = new ApiClient(again.base_url, again.credentials.access_token);
    expect(again.credentials.account_id).toBe(server.credentials.account_id);
    expect(await fresh.db.query('select user_id, display_name from profiles')).toEqual([
      { user_id: again.credentials.user_id, display_name: 'Demo Streamer' },
    ]);
    const registered = await fresh.db.query(`select data::text from domain_events where type = 'user:registered'`);
    expect(registered.map(({ data }) => Object.keys(JSON.parse(data as string) as object).sort())).toEqual(
      [0, 1].map(() => ['$v', 'registered_at', 'user_id']),
    );
    expect(await all(client, 20)).toEqual(before);
    const clouds = new VendorCloud(again.base_url, again.credentials);
    for (let n = 1; n <= 20; n += 1) expect((await clouds.kickFollow(1000 + n, `delivery-${n}`)).status).toBe(200);
    expect((await clouds.kickFollow(7, 'delivery-new')).status).toBe(200);
    expect(
      (await all(client, 21)).filter((row: { id: string }) => before.every(({ id }: { id: string }) => id !== row.id)),
    ).toHaveLength(1);
  });

  test('replay writes topics and streams as lines and as CSV', async () => {
    env = { ...settingsOf(again!.data_dir), ...shared, LUMIO_DATABASE__URL: fresh.url };
    const topic = await lumio('replay', 'platform-events');
    expect(topic.code).toBe(0);
    const records = topic.stdout
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; external_id: string; appended_at: string });
    expect(records).toHaveLength(21);
    expect(new Set(records.map(({ external_id }) => external_id)).size).toBe(21);
    expect((await lumio('replay', 'platform-events', '--duplicates')).stdout.split('\n')).toHaveLength(41);
    const since = records.map(({ appended_at }) => appended_at).sort()[20]!;
    const last = (await lumio('replay', 'platform-events', '--from', since)).stdout.split('\n');
    expect(last).toHaveLength(1);
    expect(JSON.parse(last[0]!)).toMatchObject({ external_id: expect.stringContaining('delivery-new') });
    const { stdout: nothing, code } = await lumio('replay', 'platform-events', '--to', '2020-01-01T00:00:00Z');
    expect([nothing, code]).toEqual(['', 0]);

    const stream = (await lumio('replay', `account-${again!.credentials.account_id}`, '--to', '2')).stdout.split('\n');
    expect(stream.map((line) => (JSON.parse(line) as { revision: number }).revision)).toEqual([0, 1]);
    const csv = await lumio('replay', 'domain-events', '--format', 'csv', '--output', path('events.csv'));
    expect(csv).toMatchObject({ code: 0, stdout: '' });
    const lines = readFileSync(path('events.csv'), 'utf8').split('\r\n');
    expect(lines[0]).toBe('position,stream,revision,id,type,recorded_at,data,metadata');
    expect(lines.length).toBeGreaterThan(5);
    expect(lines[1]).toMatch(/^1,[^,]+,0,[0-9a-f-]{36},[a-z:_]+,/);

    expect(await lumio('replay', 'nobody')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no topic and no stream nobody/),
    });
    expect(await lumio('replay', 'platform-events', '--from', 'yesterday')).toMatchObject({ code: 2 });
    expect(await lumio('erase', 'nobody')).toMatchObject({ code: 2 });
    expect(await lumio('erase', 'kick:77')).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^(lumio: erasing kick:77: [^]*\n)?lumio: nothing is stored about kick:77: check the id\n$/,
      ),
    });
    const commands = ['replay', 'erase', 'backup', 'restore', 'keys', 'archive'];
    const helps = await Promise.all(commands.map((command) => runLumio([command, '--help'])));
    helps.forEach((help, n) =>
      expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining(`lumio ${commands[n]!}`) }),
    );
  });

  test('the archive by the command line: moved, trimmed, and still replayed', async () => {
    const archive = { ...env, LUMIO_ARCHIVE__AFTER: '0', LUMIO_ARCHIVE__TRIM: 'true' };
    // A segment that is not full stays until it has waited a day.
    expect(await runLumio(['archive'], archive)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^archived 0 records in 0 segments\nleft \d+ records: too few for a segment; archived a day later at the latest\n$/,
      ),
    });
    const young = await runLumio(['archive'], { ...archive, LUMIO_ARCHIVE__AFTER: '30d' });
    expect(young.stdout).toMatch(/^archived 0 records in 0 segments\nleft \d+ records: younger than archive\.after\n$/);
    await fresh.db.query(`update broker_records set appended_at = appended_at - interval '2 days'`);
    expect(await runLumio(['archive'], archive)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^archived \d+ records/),
    });
    // Domain events are relayed into a topic of their own, which is archived too.
    const archived = `select sum(records)::int as n from archive_segments where topic = 'platform-events'`;
    expect(await fresh.db.query(archived)).toEqual([{ n: 41 }]);
    expect(
      (
        await fresh.db.query(
          'select count(*)::int as n from broker_records r join broker_topics using (topic_id) where topic = $1',
          ['platform-events'],
        )
      )[0]!.n,
    ).toBe(0);
    expect((await lumio('replay', 'platform-events', '--duplicates')).stdout.split('\n')).toHaveLength(41);
    expect(await lumio('rebuild', 'event-log', '--quiet')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/41 records/),
    });
  });

  test('a database recovered to before an erasure is served without what was erased', async () => {
    const person = await driveAllDoors(again!);
    const { db } = fresh;
    const about = 'select id, raw::text as raw from platform_event_logs where user_id = $1 order by id';
    const rows = await db.query(about, [String(person)]);
    expect(rows).toHaveLength(2);
    const keys = await db.query('select key_id, subject_hash, wrapped_key from subject_keys');
    expect(await lumio('erase', `kick:${person}`)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/1 keys destroyed, 2 records, 2 rows/),
    });
    expect(await again!.stop()).toBe(0);

    // As a recovery to before it leaves the database: the key, its rows, and a profile whose erasure is noted.
    const erased = await db.query<{ key_id: string }>(
      'select key_id from subject_key_erasures where key_id = any($1::uuid[])',
      [keys.map(({ key_id }) => key_id)],
    );
    expect(erased).toHaveLength(1);
    const key = keys.find(({ key_id }) => key_id === erased[0]!.key_id)!;
    await db.query('delete from subject_key_erasures where key_id = $1', [key.key_id]);
    await db.query('insert into subject_keys (key_id, subject_hash, wrapped_key) values ($1, $2, $3)', [
      key.key_id,
      key.subject_hash,
      key.wrapped_key,
    ]);
    for (const { id, raw } of rows) await db.query('update platform_event_logs set raw = $2 where id = $1', [id, raw]);
    const { user_id: other } = server.credentials.other;
    await db.query(`insert into profiles (user_id, display_name, updated_at) values ($1, 'Back', '2020-01-01')`, [
      other,
    ]);

    again = await again!.restart();
    expect(await db.query('select 1 from subject_keys where key_id = $1', [key.key_id])).toEqual([]);
    expect(await db.query('select 1 from profiles where user_id = $1', [other])).toEqual([]);
    const raws = await db.query('select raw::text as raw from platform_event_logs where id = any($1::uuid[])', [
      rows.map(({ id }) => id),
    ]);
    expect(raws.map(({ raw }) => raw)).toEqual(['"[erased]"', '"[erased]"']);
  });

  test('other master keys are refused at the start, in one line', async () => {
    expect(await again!.stop()).toBe(0);
    for (const id of ['test', 'another']) {
      const keys = `${id}:${randomBytes(32).toString('base64')}`;
      const { code, stderr } = await runLumio(['start'], { ...again!.env, LUMIO_SECRETS__KEYS: keys });
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^lumio: LUMIO_SECRETS__KEYS [^\n]*not the master keys of this database[^\n]*\n$/),
      ]);
    }
  });

  test('a restore killed in its second half is refused at the start, and continued', async () => {
    const target = await emptyDatabase();
    let served: TestServer | undefined;
    try {
      const data_dir = path('killed');
      const killed_env = { ...settingsOf(data_dir), ...shared, LUMIO_DATABASE__URL: target.url };
      const args = ['restore', path('backup'), '--keys', path('keys.json')];
      const child = spawnLumio(args, killed_env);
      const ended = once(child, 'exit');
      const marked = async () => {
        const [made] = await target.db.query(`select to_regclass('public.installation') is not null as yes`);
        if (!made!.yes) return undefined;
        const rows = await target.db.query(`select 1 from installation where name = 'restore_unfinished'`);
        return rows.length > 0 ? true : undefined;
      };
      await eventually(marked, 'the rows');
      const holder = await target.db.pool.connect();
      await holder.query('begin; lock table checkpoints in access exclusive mode');
      const waits = async () => {
        const rows = await target.db.query(
          `select 1 from pg_locks where relation = 'checkpoints'::regclass and not granted`,
        );
        return rows.length > 0 ? true : undefined;
      };
      await eventually(waits, 'a rebuild to wait');
      child.kill('SIGKILL');
      await ended;
      await holder.query('rollback');
      holder.release();

      for (const command of [['start'], ['backup', path('unfinished')], ['rebuild', '--all']])
        expect(await runLumio(command, killed_env)).toMatchObject({
          code: 1,
          stdout: '',
          stderr: expect.stringMatching(
            /^lumio: a restore of the backup of [^\n]* ended before its last step[^\n]*\n$/,
          ),
        });
      const again_whole = await runLumio(args, killed_env);
      expect(again_whole).toMatchObject({ code: 1, stderr: expect.stringMatching(/did not end; run .* --continue/) });
      const nightly = await runLumio(['restore', 'blob:nightly', '--continue'], killed_env);
      expect(nightly).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/unfinished restore is of the backup of/),
      });
      const { code, stdout, stderr } = await runLumio([...args, '--continue'], killed_env);
      expect([code, stderr, stdout]).toEqual([0, '', expect.stringMatching(/event-log: 20 records, 0 parked/)]);
      const twice = await runLumio([...args, '--continue'], killed_env);
      expect(twice).toMatchObject({ code: 1, stderr: expect.stringMatching(/no unfinished restore/) });

      served = await startServer({ env: { ...shared, LUMIO_DATABASE__URL: target.url } });
      expect(await new ApiClient(served.base_url, served.credentials.access_token).allEvents()).toHaveLength(20);
      await driveAllDoors(served);
    } finally {
      await served?.dispose();
      await target.drop();
    }
  });
});
