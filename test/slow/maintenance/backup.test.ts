import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { v7 as uuid } from 'uuid';
import { PROJECTIONS } from '../../../bin/areas';
import { tablesLeftOut } from '../../../cli/runtime/left-out';
import { LOGS_OF_RECORD, TOPICS, type RecordEnvelope } from '../../../domain/common/records';
import { createBackup } from '../../../engines/backup/backup';
import { readTables, relation } from '../../../engines/backup/catalog';
import { logRestoresOf } from '../../../engines/backup/log-restores';
import { eventsInFile, topicsInFiles } from '../../../engines/backup/log-sources';
import { sha256Of } from '../../../engines/backup/logs';
import { type Manifest, signedManifest } from '../../../engines/backup/manifest';
import { partitionBound, partitionKey } from '../../../engines/backup/partition-bounds';
import { restoreEvents, restoreTopic } from '../../../engines/backup/restore-logs';
import { restoreBackup } from '../../../engines/backup/restore';
import { markFinished, refuseUnfinishedRestore } from '../../../engines/backup/unfinished';
import { restoreBlobs } from '../../../engines/backup/restore-blobs';
import { verifyBackup } from '../../../engines/backup/verify';
import { createFileBlobs } from '../../../engines/blobs/files';
import type { Blobs } from '../../../engines/blobs/port';
import type { Broker, BrokerRecord } from '../../../engines/broker/port';
import type { EventStore, StoredEvent } from '../../../engines/event-store/port';
import { LOCKS } from '../../../engines/locks/port';
import { createSecretBox } from '../../../privacy/secrets/box';
import { parseMasterKeys } from '../../../privacy/secrets/master-keys';
import { createSubjectKeys, SUBJECT_KEY_TABLES } from '../../../privacy/subject-keys/postgres';
import {
  applyNotedErasures,
  erasePending,
  exportSubjectKeys,
  importSubjectKeys,
  noteErasures,
} from '../../../privacy/subject-keys/transfer';
import { migrate } from '../../../engines/postgres/migrate';
import { type Migration, MIGRATIONS } from '../../../migrations';
import { decodeSegment, encodeSegment } from '../../../maintenance/archive/format';
import { reapplyErasures } from '../../../privacy/erasure/noted-erasures';
import { eventLog } from '../../../projections/events/events';
import type { Projection } from '../../../kernel/projection';
import { ensureLedgerPartitions } from '../../../projections/runtime/ledger/ledger';
import { rebuild } from '../../../projections/runtime/rebuild/rebuild';
import { driveAllDoors } from '../../support/all-doors';
import { emptyDatabase, type TestDatabase, testDatabase } from '../../support/database';
import {
  ACCOUNTS,
  createTally,
  engines,
  type Engines,
  eventTally,
  record,
  runtimeOf,
  until,
} from '../../support/projections';
import { startServer } from '../../support/server';

const TOPIC = TOPICS.platform_events;
const master_keys = parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`);
const secrets = createSecretBox(master_keys);
const LEFT_OUT = [
  'platform_event_logs',
  'event_log_counters',
  'outbox',
  'channel_heads',
  'outbox_heads',
  'leases',
  'broker_members',
  'broker_leases',
  ...SUBJECT_KEY_TABLES,
];

let t: TestDatabase;
let on: Engines;
let folder: string;
let target: Blobs;
let blobs: Blobs;
const opened: { close(): Promise<void> }[] = [];

beforeEach(async () => {
  t = await testDatabase(20);
  on = await engines(t.db);
  folder = mkdtempSync(join(tmpdir(), 'lumio-backup-'));
  target = await createFileBlobs(join(folder, 'backup'));
  blobs = await createFileBlobs(join(folder, 'blobs'));
});
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
  await on.close();
  await t.drop();
  rmSync(folder, { recursive: true, force: true });
});

const common = () => ({
  pool: t.db.pool,
  target,
  prefix: '',
  blobs,
  copy_blobs: true,
  leave_out: LEFT_OUT,
  engines: { events: on.events.id, broker: on.broker.id },
  secrets,
  version: '1',
});
const backup = (prefix = '', into = target) => createBackup({ ...common(), prefix, target: into });

/** A fresh database filled from the backup, with its engines. */
async function restored(prefix = '') {
  const fresh = await emptyDatabase();
  opened.push({ close: () => fresh.drop() });
  const manifest = await restoreBackup({ url: fresh.url, from: target, prefix, secrets });
  const again = await engines(fresh.db);
  opened.push(again);
  return { db: fresh.db, url: fresh.url, manifest, ...again };
}

/** A key export as its lines. */
async function exported(db: TestDatabase['db']): Promise<string[]> {
  const lines: string[] = [];
  await exportSubjectKeys(db, async (line) => void lines.push(line));
  return lines;
}

test('no backup begins while the schema is migrated', async () => {
  const guard = await t.db.pool.connect();
  await guard.query('select pg_advisory_lock($1)', [LOCKS.backup]);
  await expect(backup()).rejects.toThrow('the schema is being migrated');
  await guard.query('select pg_advisory_unlock($1)', [LOCKS.backup]);
  guard.release();
  expect((await backup()).format).toBe(1);
});

const person = (n: number) => `kick:${n}`;
const follower = (n: number): RecordEnvelope => ({
  ...record(ACCOUNTS[n % 8]!, ''),
  external_id: `kick:delivery-${n}`,
  subject: person(n % 10),
  raw: JSON.stringify({ follower: { user_id: n % 10, name: `canary-${n % 10}` } }),
});

const rowsOf = (db: TestDatabase['db'], columns = 'id, account_id, external_id, user_id, raw::text, created_at') =>
  db.query(`select ${columns} from platform_event_logs order by id`);
const count = async (db: TestDatabase['db'], table: string) =>
  (await db.query(`select count(*)::int as n from ${table}`))[0]!.n as number;
const rebuildAll = async (to: { db: TestDatabase['db'] } & Omit<Engines, 'close'>, projections: Projection[]) => {
  for (const { name } of projections) await rebuild({ ...to, projections, name });
};

test('taken under live writes it is of one moment: restored, every log, ledger and checkpoint agree and the tail goes on', async () => {
  const runtime = runtimeOf(t.db, on, [eventLog]);
  await runtime.start();
  const sent: RecordEnvelope[] = [];
  let stop = false;
  const writing = (async () => {
    for (let n = 0; !stop; n += 5) {
      const some = Array.from({ length: 5 }, (_, i) => follower(n + i));
      await on.records.append(TOPIC, some);
      sent.push(...some);
      const event = { id: uuid(), type: 'thing:happened', data: { n } };
      await on.events.append([{ stream: `s${n % 3}`, expected: 'any', events: [event] }], {});
    }
  })();
  await until(async () => (await count(t.db, 'platform_event_logs')) > 300);
  const manifest = await backup();
  stop = true;
  await writing;
  await until(async () => (await count(t.db, 'platform_event_logs')) === sent.length);
  await runtime.stop();
  expect(await verifyBackup({ from: target, prefix: '' })).toEqual({ manifest, problems: [] });
  const before = {
    epoch: (await t.db.query(`select value from installation where name = 'epoch'`))[0]!.value as string,
  };

  const fresh = await restored();
  for (const { name, rows } of manifest.tables.filter(({ name: of }) => !/^schema_|^installation$/.test(of))) {
    expect([name, await count(fresh.db, name)]).toEqual([name, rows]);
  }
  const facts = new Map(
    (await fresh.db.query('select name, value from installation')).map((row) => [row.name, row.value]),
  );
  expect(facts.get('id')).toBe(manifest.installation_id);
  expect(facts.get('epoch')).not.toBe(before.epoch);
  await importSubjectKeys({ db: fresh.db, secrets, blobs }, await exported(t.db));
  await rebuildAll(fresh, [eventLog]);

  const live = runtimeOf(fresh.db, fresh, [eventLog]);
  await live.start();
  const kept = await fresh.db.query<{ n: number }>('select sum(next_offset)::int as n from broker_partitions');
  await until(async () => (await count(fresh.db, 'platform_event_logs')) === kept[0]!.n);
  // What came after the snapshot is sent again, as a vendor would, under new ids and signatures, with everything before
  // it.
  await fresh.records.append(
    TOPIC,
    sent.map((one) => ({ ...one, id: uuid() })),
  );
  await until(async () => (await count(fresh.db, 'platform_event_logs')) === sent.length);
  await fresh.events.append(
    [{ stream: 's1', expected: 'any', events: [{ id: uuid(), type: 'thing:happened', data: {} }] }],
    {},
  );
  await live.stop();
  expect(
    await rowsOf(fresh.db, 'account_id, external_id, user_id, raw::text, created_at').then((rows) =>
      rows.map(text).sort(),
    ),
  ).toEqual((await rowsOf(t.db, 'account_id, external_id, user_id, raw::text, created_at')).map(text).sort());
  const positions = await fresh.db.query('select position from domain_events order by position');
  expect(positions.map(({ position }) => position)).toEqual(positions.map((_, index) => index + 1));
});

test('large tables are copied without a snapshot, up to the bounds of the one that the small tables show', async () => {
  await ensureLedgerPartitions(t.db);
  const runtime = runtimeOf(t.db, on, [eventLog]);
  await runtime.start();
  const happen = () =>
    on.events.append(
      [{ stream: 's', expected: 'any', events: [{ id: uuid(), type: 'thing:happened', data: {} }] }],
      {},
    );
  const sent: RecordEnvelope[] = [];
  const traffic = async () => {
    const some = Array.from({ length: 40 }, (_, n) => follower(sent.length + n));
    await on.records.append(TOPIC, some);
    await happen();
    sent.push(...some);
    await until(async () => (await count(t.db, 'platform_event_logs')) === sent.length);
  };
  await traffic();
  const snapshots = async () =>
    (
      await t.db.query<{ held: boolean }>(
        `select backend_xmin is not null as held from pg_stat_activity
         where datname = current_database() and application_name = 'lumio backup'`,
      )
    ).map(({ held }) => held);
  const later: Migration = { name: '9000-later', up: async () => undefined };
  const refusals: unknown[] = [];
  const held: boolean[][] = [];
  const slow: Blobs = Object.create(target);
  slow.put = async (key, content, type) => {
    if (/^tables\/(installation|ledger|broker_records|domain_events)\./.test(key)) {
      if (!key.startsWith('tables/installation')) await until(async () => !(await snapshots()).includes(true));
      held.push(await snapshots());
      await traffic();
      refusals.push(await migrate(t.url, { steps: [...MIGRATIONS, later] }).catch((error: Error) => error.message));
    }
    return target.put(key, content, type);
  };
  const manifest = await backup('', slow);
  await runtime.stop();
  expect(held).toEqual([[true], [false], [false], [false]]);
  expect(refusals).toEqual(held.map(() => expect.stringMatching(/^a backup of the database runs, and schema steps/)));
  await until(async () => (await snapshots()).length === 0);
  const rows = new Map(manifest.tables.map((table) => [table.name, table.rows]));
  // One of five rounds of traffic came before the snapshot.
  expect([rows.get('ledger'), rows.get('broker_records'), rows.get('domain_events')]).toEqual([40, 40, 1]);

  const fresh = await restored();
  expect(await fresh.db.query('select sum(next_offset)::int as n from broker_partitions')).toEqual([{ n: 40 }]);
  await importSubjectKeys({ db: fresh.db, secrets, blobs }, await exported(t.db));
  await rebuildAll(fresh, [eventLog]);
  const live = runtimeOf(fresh.db, fresh, [eventLog]);
  await live.start();
  await fresh.records.append(
    TOPIC,
    sent.map((one) => ({ ...one, id: uuid() })),
  );
  await until(async () => (await count(fresh.db, 'platform_event_logs')) === sent.length);
  await live.stop();
  const columns = 'account_id, external_id, user_id, raw::text, created_at';
  const sorted = async ({ db }: { db: TestDatabase['db'] }) => (await rowsOf(db, columns)).map(text).sort();
  expect(await sorted(fresh)).toEqual(await sorted(t));
});

test('rows of many block ranges come back whole', async () => {
  await t.db.query(
    `insert into broker_records (topic_id, partition, "offset", appended_at, key, value)
     select topic_id, $2, n, now(), 'k', convert_to($3 || n, 'UTF8')
     from broker_topics, generate_series(0, 999) n where topic = $1`,
    [TOPIC, 0, 'x'.repeat(1_800)],
  );
  await t.db.query(
    `update broker_partitions set next_offset = 1000, earliest = 10
     where partition = $2 and topic_id = (select topic_id from broker_topics where topic = $1)`,
    [TOPIC, 0],
  );
  await t.db.query('vacuum broker_records');
  const manifest = await backup();
  expect(manifest.tables.find(({ name }) => name === 'broker_records')!.rows).toBe(990);
  const fresh = await restored();
  const sums = `select count(*)::int as n, sum(length(value))::int as bytes, md5(string_agg(value, '' order by "offset"))
    from broker_records where "offset" >= 10`;
  expect(await fresh.db.query(sums)).toEqual(await t.db.query(sums));
});

test('a backup whose records were trimmed before it copied them fails and says why', async () => {
  await on.records.append(TOPIC, [follower(1)]);
  const trimming: Blobs = Object.create(target);
  trimming.put = async (key, content, type) => {
    if (key.startsWith('tables/installation')) {
      for (const [partition, { next }] of await on.broker.bounds(TOPIC)) await on.broker.trim(TOPIC, partition, next);
    }
    return target.put(key, content, type);
  };
  await expect(backup('', trimming)).rejects.toThrow(
    'broker_records gave 0 rows instead of 1: records were trimmed meanwhile; take the backup again',
  );
  await expect(verifyBackup({ from: target, prefix: '' })).rejects.toThrow(/no finished backup/);
});

const text = (row: object) => JSON.stringify(row);

test('a restored database has every row that the schema steps make, table by table, and its doors answer', async () => {
  await createBackup({ ...common(), leave_out: tablesLeftOut(PROJECTIONS) });
  const fresh = await emptyDatabase();
  opened.push({ close: () => fresh.drop() });
  await restoreBackup({ url: fresh.url, from: target, prefix: '', secrets });
  const migrated = await testDatabase();
  opened.push({ close: () => migrated.drop() });
  // As in the database that was backed up.
  opened.push(await engines(migrated.db));
  const tables = await readTables(migrated.db);
  expect((await readTables(fresh.db)).map(({ name }) => name)).toEqual(tables.map(({ name }) => name));
  const filled: string[] = [];
  for (const { name } of tables) {
    const columns = OF_A_MOMENT[name] ?? '*';
    const rows = async ({ db }: TestDatabase) =>
      (await db.query(`select r::text as row from (select ${columns} from ${relation(name)}) r`))
        .map(({ row }) => row as string)
        .sort();
    const expected = await rows(migrated);
    expect([name, await rows(fresh)]).toEqual([name, expect.arrayContaining(expected)]);
    if (expected.length > 0) filled.push(name);
  }
  expect(filled).toEqual(expect.arrayContaining(['installation', 'outbox_heads', 'schema_migrations']));

  await expect(refuseUnfinishedRestore(fresh.db)).rejects.toThrow(/ended before its last step/);
  await markFinished(fresh.db);
  await refuseUnfinishedRestore(fresh.db);
  const key = `test:${Buffer.alloc(32, 7).toString('base64')}`;
  const server = await startServer({ env: { LUMIO_DATABASE__URL: fresh.url, LUMIO_SECRETS__KEYS: key } });
  opened.push({ close: () => server.dispose() });
  await driveAllDoors(server);
});

/** Columns that are the same in every database of one schema; of other tables all are. */
const OF_A_MOMENT: Record<string, string> = {
  installation: 'name',
  schema_migrations: 'name, batch',
  'graphile_worker.migrations': 'id, breaking',
};

test('state of its own survives to the byte: odd values, null, arrays, generated ids', async () => {
  await t.db
    .query(`create table odd (id bigint generated always as identity primary key, a text, b bytea, c text[], d jsonb, e json,
    f double precision, g timestamptz, h interval, twice text generated always as (a || a) stored)`);
  await t.db.query(`insert into odd (a, b, c, d, e, f, g, h) values
    (E'tab\\t line\\n back\\\\slash \\\\N', '\\x00ff0a', array['a', null, 'x,"y'], '{"n": 1}', '{"n":820982911946154508}', 0.1, '2026-01-02 03:04:05.678901+00', '1 day 2 ms'),
    (null, null, null, null, null, 'NaN', '-infinity', null), ('', '', '{}', 'null', '""', 1e308, '1969-12-31 23:59:59+00', '0')`);
  const before = await t.db.query('select odd::text as row from odd order by id');
  const manifest = await backup();
  expect(manifest.tables.find(({ name }) => name === 'odd')!.rows).toBe(3);
  const fresh = await emptyDatabase();
  opened.push({ close: () => fresh.drop() });
  // Not a table of ours: the schema of the steps does not have it, and nothing is restored then.
  await expect(restoreBackup({ url: fresh.url, from: target, prefix: '', secrets })).rejects.toThrow(/no table odd/);
  expect(await count(fresh.db, 'domain_events')).toBe(0);
  await fresh.db
    .query(`create table odd (id bigint generated always as identity primary key, a text, b bytea, c text[], d jsonb, e json,
    f double precision, g timestamptz, h interval, twice text generated always as (a || a) stored)`);
  await restoreBackup({ url: fresh.url, from: target, prefix: '', secrets });
  expect(await fresh.db.query('select odd::text as row from odd order by id')).toEqual(before);
  expect((await fresh.db.query(`insert into odd (a) values ('x') returning id`))[0]!.id).toBe(4);
});

test('no subject key is in it; an erased person stays erased, even when an older key export is imported', async () => {
  const runtime = runtimeOf(t.db, on, [eventLog]);
  await runtime.start();
  await on.records.append(
    TOPIC,
    Array.from({ length: 40 }, (_, n) => follower(n)),
  );
  await until(async () => (await count(t.db, 'platform_event_logs')) === 40);
  await runtime.stop();
  await backup();
  const old_keys = await exported(t.db);
  const { keys } = JSON.parse(old_keys[1]!) as { keys: { wrapped_key: string }[] };
  expect(keys).toHaveLength(10);
  // Nothing clear about anybody, anywhere in the backup.
  const looked: string[] = [];
  for await (const { key } of target.list('')) {
    looked.push(key);
    const chunks: Buffer[] = [];
    for await (const chunk of (await target.get(key))!) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    const content = key.endsWith('.gz') ? gunzipSync(bytes) : bytes;
    expect([key, content.includes('canary')]).toEqual([key, false]);
    for (const { wrapped_key } of keys) expect(content.includes(wrapped_key)).toBe(false);
  }
  expect(looked).toContain('tables/broker_records.copy.gz');
  // Erased after both were taken: only the note beside the database knows.
  const subject_keys = createSubjectKeys({ db: t.db, master_keys });
  const { key_id } = (await subject_keys.forWriting([person(3)])).get(person(3))!;
  await noteErasures(blobs, [key_id], new Date().toISOString());
  await subject_keys.erase(person(3));

  const fresh = await restored();
  expect(await importSubjectKeys({ db: fresh.db, secrets, blobs }, old_keys)).toEqual({
    imported: 9,
    known: 0,
    erased: 1,
  });
  expect(await importSubjectKeys({ db: fresh.db, secrets, blobs }, old_keys)).toEqual({
    imported: 0,
    known: 9,
    erased: 1,
  });
  await applyNotedErasures(fresh.db, blobs);
  await rebuildAll(fresh, [eventLog]);
  const rows = await rowsOf(fresh.db);
  expect(rows).toHaveLength(40);
  for (const { external_id, raw, user_id } of rows) {
    const n = Number((external_id as string).split('-')[1]) % 10;
    expect([n, user_id, (raw as string).includes(`canary-${n}`)]).toEqual([n, n === 3 ? null : String(n), n !== 3]);
  }
  const again = createSubjectKeys({ db: fresh.db, master_keys });
  expect((await again.forWriting([person(4)])).get(person(4))!.key_id).toBe(
    (await createSubjectKeys({ db: t.db, master_keys }).forWriting([person(4)])).get(person(4))!.key_id,
  );
  expect((await again.forWriting([person(3)])).get(person(3))!.key_id).not.toBe(key_id);
});

test('damage is found: a changed file, a lost file, an unfinished backup; a restore from it leaves the database empty', async () => {
  await on.records.append(
    TOPIC,
    Array.from({ length: 20 }, (_, n) => follower(n)),
  );
  await blobs.put('sounds/horn.mp3', Buffer.from('toot'), 'audio/mpeg');
  await backup('one/');
  await expect(backup('one/')).rejects.toThrow(/a backup lies there already/);
  expect((await verifyBackup({ from: target, prefix: 'one/' })).problems).toEqual([]);
  const cut_short: typeof target = Object.create(target);
  let puts = 0;
  cut_short.put = async (...given) => {
    if ((puts += 1) > 5) throw new Error('the disk is full');
    return target.put(...given);
  };
  await expect(backup('half/', cut_short)).rejects.toThrow('the disk is full');
  expect(puts).toBeGreaterThan(5);
  await expect(verifyBackup({ from: target, prefix: 'half/' })).rejects.toThrow(/no finished backup/);
  const path = join(folder, 'backup/one/tables/broker_records.copy.gz~blob');
  const bytes = readFileSync(path);
  const damaged = Buffer.from(bytes);
  damaged[300]! ^= 1;
  writeFileSync(path, damaged);
  expect((await verifyBackup({ from: target, prefix: 'one/' })).problems).toEqual([
    expect.stringMatching(/^broker_records: /),
  ]);
  const fresh = await emptyDatabase();
  opened.push({ close: () => fresh.drop() });
  const half = restoreBackup({ url: fresh.url, from: target, prefix: 'half/', secrets });
  await expect(half).rejects.toThrow(/no finished backup/);
  const damaged_one = restoreBackup({ url: fresh.url, from: target, prefix: 'one/', secrets });
  await expect(damaged_one).rejects.toThrow(/broker_records/);
  expect(await count(fresh.db, 'broker_topics')).toBe(0);
  rmSync(path);
  expect((await verifyBackup({ from: target, prefix: 'one/' })).problems).toEqual([
    'broker_records: one/tables/broker_records.copy.gz is missing',
  ]);
  writeFileSync(path, bytes);
  const copies = join(folder, 'backup/one/blobs');
  rmSync(join(copies, readdirSync(copies)[0]!));
  expect((await verifyBackup({ from: target, prefix: 'one/' })).problems).toEqual([
    expect.stringMatching(/^blobs: the copy of sounds\/horn.mp3/),
  ]);
  await restoreBackup({ url: fresh.url, from: target, prefix: 'one/', secrets });
  await expect(restoreBackup({ url: fresh.url, from: target, prefix: 'one/', secrets })).rejects.toThrow(/not empty/);
});

test('a blob that was written again since the backup is kept, and named', async () => {
  for (const name of ['same', 'changed', 'lost']) await blobs.put(`sounds/${name}`, Buffer.from(name), 'audio/mpeg');
  const manifest = await backup();
  await blobs.put('sounds/changed', Buffer.from('later'), 'audio/mpeg');
  await blobs.delete('sounds/lost');
  expect(await restoreBlobs({ from: target, prefix: '', manifest, to: blobs })).toEqual({
    copied: 1,
    missing: [],
    differing: ['sounds/changed'],
  });
  expect((await blobs.head('sounds/changed'))!.size_bytes).toBe('later'.length);
});

test('other master keys, a newer Lumio and a database in use are refused before anything is written', async () => {
  await backup();
  const fresh = await emptyDatabase();
  opened.push({ close: () => fresh.drop() });
  const wrong = createSecretBox(parseMasterKeys(`test:${Buffer.alloc(32, 8).toString('base64')}`));
  await expect(restoreBackup({ url: fresh.url, from: target, prefix: '', secrets: wrong })).rejects.toThrow(
    /master keys of the backup/,
  );
  const client = await fresh.db.pool.connect();
  for (const running of ['lumio main', 'lumio rebuild']) {
    await client.query(`set application_name = '${running}'`);
    await expect(restoreBackup({ url: fresh.url, from: target, prefix: '', secrets })).rejects.toThrow(/is running/);
  }
  await client.query(`set application_name = ''`);
  client.release();
  await forge('future/', (manifest) => manifest.steps.push('9999-future'), secrets);
  await expect(restoreBackup({ url: fresh.url, from: target, prefix: 'future/', secrets })).rejects.toThrow(
    /newer Lumio/,
  );
  expect((await fresh.db.query(`select count(*)::int as n from pg_tables where schemaname = 'public'`))[0]!.n).toBe(0);
});

/**
 * Puts a changed copy of the backup's manifest below `prefix`: with the MAC that it had, with a right one, or without.
 */
async function forge(
  prefix: string,
  change: (manifest: Manifest) => unknown,
  sign?: typeof secrets | 'none',
): Promise<void> {
  const { mac, ...manifest } = JSON.parse((await buffer('manifest.json')).toString()) as Manifest & { mac: string };
  change(manifest);
  const text = sign && sign !== 'none' ? signedManifest(manifest, sign) : '';
  const kept = JSON.stringify({ ...manifest, ...(sign === 'none' ? {} : { mac }) });
  await target.put(`${prefix}manifest.json`, Buffer.from(text || kept));
}

type Place = readonly (string | number)[];

/** The places of all values in a JSON document that hold no others. */
function leavesOf(value: unknown, at: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return [at];
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return entries.flatMap(([name, inner]) => leavesOf(inner, [...at, name]));
}

/** Puts another value of the same kind at a place. */
function change(document: unknown, place: Place): void {
  const [inner, last] = [place.slice(0, -1), place.at(-1)!];
  const holder = inner.reduce((value, name) => (value as Record<string, unknown>)[name], document);
  const values = holder as Record<string, unknown>;
  const value = values[last];
  values[last] = typeof value === 'number' ? value + 1 : typeof value === 'boolean' ? !value : `${String(value)}x`;
}

describe('a manifest that somebody changed', () => {
  const into = async (prefix: string, more: { unsigned?: boolean; secrets?: typeof secrets } = {}) => {
    const fresh = await emptyDatabase();
    opened.push({ close: () => fresh.drop() });
    const restoring = restoreBackup({ url: fresh.url, from: target, prefix, secrets, ...more });
    return { fresh, restoring };
  };
  const tables = async (db: TestDatabase['db']) =>
    (await db.query(`select count(*)::int as n from pg_tables where schemaname = 'public'`))[0]!.n;

  test('is refused before anything is written, whatever was changed; a new master key in front does not matter', async () => {
    await backup();
    const changes: ((manifest: Manifest) => unknown)[] = [
      (manifest) => (manifest.taken_at = '2020-01-01T00:00:00Z'),
      (manifest) => (manifest.tables[0]!.content_sha256 = 'f'.repeat(64)),
      (manifest) => manifest.tables.pop(),
      (manifest) => (manifest.engines.broker = 'kafka:elsewhere'),
      (manifest) => Object.assign(manifest, { of_another_form: true }),
    ];
    for (const [n, change] of changes.entries()) {
      await forge(`forged-${n}/`, change);
      const { fresh, restoring } = await into(`forged-${n}/`, { unsigned: true });
      await expect(restoring).rejects.toThrow(/^manifest\.json is not what was backed up: .*MAC/);
      expect(await tables(fresh.db)).toBe(0);
      const { problems } = await verifyBackup({ from: target, prefix: `forged-${n}/`, secrets });
      expect(problems).toContainEqual(expect.stringMatching(/^signature: manifest\.json is not what was backed up/));
    }
    const { mac: _kept, ...signed } = JSON.parse((await buffer('manifest.json')).toString()) as { mac: string };
    const places = leavesOf(signed);
    expect(places.length).toBeGreaterThan(100);
    const any_change = fc.asyncProperty(fc.constantFrom(...places), fc.nat(), async (place, n) => {
      await forge(`any-${n}/`, (manifest) => change(manifest, place));
      const found = await verifyBackup({ from: target, prefix: `any-${n}/`, secrets }).then(
        ({ problems }) => problems,
        (error: Error) => [error.message],
      );
      expect(found).not.toEqual([]);
    });
    await fc.assert(any_change, { numRuns: 40 });
    const key = (n: number) => Buffer.alloc(32, n).toString('base64');
    const rotated = createSecretBox(parseMasterKeys(`new:${key(9)},test:${key(7)}`));
    await (
      await into('', { secrets: rotated })
    ).restoring;
  });

  test('without a MAC, as builds before wrote it, is restored only when asked for', async () => {
    await backup();
    await forge('before/', () => undefined, 'none');
    const { fresh, restoring } = await into('before/');
    await expect(restoring).rejects.toThrow(/not signed.*--unsigned/);
    expect(await tables(fresh.db)).toBe(0);
    expect((await verifyBackup({ from: target, prefix: 'before/', secrets })).problems).toContainEqual(
      expect.stringMatching(/^signature: there is none/),
    );
    await (
      await into('before/', { unsigned: true })
    ).restoring;
  });

  test('takes no text into SQL and no name that our catalogue has not, with a right MAC or without one', async () => {
    await on.records.append(TOPIC, [follower(1)]);
    await backup();
    const records = (manifest: Manifest) => manifest.tables.find(({ name }) => name === 'broker_records')!;
    const harm = `for values in (1); create table harmed (); --`;
    const cases: [(manifest: Manifest) => unknown, RegExp][] = [
      [(m) => (records(m).partitions[0]!.bound = harm), /not a bound of a partition/],
      [(m) => (records(m).partitions[0]!.bound = `FOR VALUES IN (1, (select 1))`), /not a bound of a partition/],
      [(m) => (records(m).partitions[0]!.bound = `FOR VALUES FROM ('a') TO (now())`), /not a bound of a partition/],
      [(m) => (records(m).partitions[0]!.part_key = 'LIST (harm())'), /not the key of a partitioned table/],
      [(m) => (records(m).partitions[0]!.parent = 'installation'), /no table installation below broker_records/],
      [(m) => (records(m).partitions[0]!.name = 'leases'), /leases is no partition of broker_records/],
      [(m) => (records(m).columns[0] = 'xmin'), /no column xmin of broker_records/],
      [(m) => (m.tables[0]!.name = 'pg_class'), /no table pg_class/],
    ];
    for (const [n, [change, why]] of cases.entries()) {
      await forge(`harm-${n}/`, change, secrets);
      const { fresh, restoring } = await into(`harm-${n}/`);
      await expect(restoring).rejects.toThrow(why);
      expect(await fresh.db.query(`select to_regclass('harmed') is null as unharmed`)).toEqual([{ unharmed: true }]);
      expect(await count(fresh.db, 'domain_events')).toBe(0);
    }
  });
});

test('bounds of partitions are written anew from their values', () => {
  const same: [string, string][] = [
    ['DEFAULT', 'default'],
    [`FOR VALUES IN (1, '2', 'it''s', NULL)`, `for values in (1, '2', 'it''s', null)`],
    [
      `FOR VALUES FROM ('2026-01-01 00:00:00+00', MINVALUE) TO ('2026-02-01 00:00:00+00', MAXVALUE)`,
      `for values from ('2026-01-01 00:00:00+00', minvalue) to ('2026-02-01 00:00:00+00', maxvalue)`,
    ],
    ['FOR VALUES WITH (modulus 4, remainder 1)', 'for values with (modulus 4, remainder 1)'],
  ];
  for (const [text, sql] of same) expect(partitionBound(text)).toBe(sql);
  for (const text of ['', 'default', `FOR VALUES IN ('\\')`, `FOR VALUES IN (''')`, `FOR VALUES IN (MAXVALUE)`]) {
    expect(() => partitionBound(text)).toThrow();
  }
  expect(partitionKey('RANGE (created_at, id)', ['id', 'created_at'])).toBe('range ("created_at", "id")');
  expect(() => partitionKey('RANGE (lower(id))', ['id'])).toThrow();
  expect(() => partitionKey('RANGE (other)', ['id'])).toThrow();
});

const codec = { encode: encodeSegment, decode: decodeSegment };

/** Writes every log of the backup through the ports. */
async function restoreLogs(manifest: Manifest, to: { db: TestDatabase['db'] } & Omit<Engines, 'close'>): Promise<void> {
  const options = { ...to, from: manifest.engines, report: () => undefined };
  for (const topic of topicsInFiles(target, manifest, codec)) await restoreTopic(options, topic);
  await restoreEvents(options, eventsInFile(target, manifest.logs!.events!));
}

test('logs outside the database go through their ports, and checkpoints move to the places of the same records', async () => {
  const runtime = runtimeOf(t.db, on, [eventLog, eventTally()]);
  await createTally(t.db, 'event_tally');
  await runtime.start();
  const happen = (n: number) =>
    on.events.append(
      [{ stream: `s${n % 3}`, expected: 'any', events: [{ id: uuid(), type: 'thing:happened', data: { n } }] }],
      { n: String(n) },
    );
  for (let n = 0; n < 30; n += 1) await happen(n);
  await on.records.append(
    TOPIC,
    Array.from({ length: 100 }, (_, n) => follower(n)),
  );
  await until(async () => (await count(t.db, 'platform_event_logs')) === 100);
  await until(async () => (await t.db.query('select coalesce(sum(n), 0)::int as n from event_tally'))[0]!.n === 30);
  await runtime.stop();
  // Offsets there begin above 0; here they will begin at 0.
  for (const [partition, { next }] of await on.broker.bounds(TOPIC))
    await on.broker.trim(TOPIC, partition, Math.min(3, next));
  await on.records.append(
    TOPIC,
    Array.from({ length: 20 }, (_, n) => follower(100 + n)),
  );
  for (let n = 30; n < 35; n += 1) await happen(n);
  const read = async function* (topic: string, partition: number, to: number) {
    yield* on.broker.read(topic, partition, (await on.broker.bounds(topic)).get(partition)!.earliest, to);
  };
  const manifest = await createBackup({
    ...common(),
    copy_blobs: false,
    leave_out: [...LEFT_OUT, 'event_tally', 'broker_topics', 'broker_partitions', 'broker_records', 'domain_events'],
    logs: { codec, broker: { port: on.broker, topics: LOGS_OF_RECORD, read }, events: on.events },
  });
  const steps: { done: number; total: number; what: string }[] = [];
  const onProgress = (step: (typeof steps)[number]) => void steps.push(step);
  expect((await verifyBackup({ from: target, prefix: '', onProgress })).problems).toEqual([]);
  expect(steps.map(({ what }) => what)).toContain(manifest.logs!.events!.file.key);
  const last = steps.at(-2)!;
  expect([steps.at(-1)!.done, last.done]).toEqual([last.total, last.total - manifest.blobs.size_bytes]);
  const fresh = await restored();
  await restoreLogs(manifest, fresh);
  await importSubjectKeys({ db: fresh.db, secrets, blobs }, await exported(t.db));
  await createTally(fresh.db, 'event_tally');
  const live = runtimeOf(fresh.db, fresh, [eventLog, eventTally()]);
  await live.start();
  await until(async () => (await count(fresh.db, 'platform_event_logs')) === 20);
  await until(async () => (await fresh.db.query('select coalesce(sum(n), 0)::int as n from event_tally'))[0]!.n === 5);
  await fresh.records.append(TOPIC, [follower(120)]);
  await until(async () => (await count(fresh.db, 'platform_event_logs')) === 21);
  await live.stop();
  const stored = async ({ events }: { events: EventStore }) => {
    const found: StoredEvent[] = [];
    for await (const batch of events.readAll(null)) found.push(...batch.events);
    return found;
  };
  // Positions are the same here, since both stores number events; the time of recording is that of the first store.
  expect(await stored(fresh)).toEqual(await stored(on));
});

describe('what a restore does about logs outside the database', () => {
  /** A log that lies in a database of its own, under its own name. */
  async function outside(id: string) {
    const other = await testDatabase(4);
    opened.push({ close: () => other.drop() });
    const its = await engines(other.db);
    opened.push(its);
    const broker: Broker = Object.assign(its.broker, { id: `broker-${id}` });
    const events: EventStore = Object.assign(its.events, { id: `events-${id}` });
    return { db: other.db, records: its.records, broker, events, topics: LOGS_OF_RECORD, partitions: 4 };
  }
  const happen = ({ events }: { events: EventStore }, id = uuid()) =>
    events.append([{ stream: 's', expected: 'any', events: [{ id, type: 'thing:happened', data: {} }] }], {});
  async function backedUp(from: Awaited<ReturnType<typeof outside>>): Promise<Manifest> {
    const read = (topic: string, partition: number, to: number) => from.broker.read(topic, partition, 0, to);
    const logs = { codec, broker: { port: from.broker, topics: LOGS_OF_RECORD, read }, events: from.events };
    const ids = { events: from.events.id, broker: from.broker.id };
    return createBackup({ ...common(), logs, engines: ids });
  }

  test('empty engines are written, the ones that were backed up are kept, in the database it is written too', async () => {
    const here = await outside('a');
    await here.records.append(TOPIC, [follower(1), follower(2), follower(3)]);
    await happen(here);
    const manifest = await backedUp(here);
    expect(await logRestoresOf(manifest, here)).toEqual({ topics: 'keep', events: 'keep' });
    await here.records.append(TOPIC, [follower(4)]);
    await happen(here);
    expect(await logRestoresOf(manifest, here)).toEqual({ topics: 'keep', events: 'keep' });
    // What the archiver took away since is not missed.
    for (const [partition, { next }] of await here.broker.bounds(TOPIC)) await here.broker.trim(TOPIC, partition, next);
    expect(await logRestoresOf(manifest, here)).toEqual({ topics: 'keep', events: 'keep' });
    expect(await logRestoresOf(manifest, await outside('b'))).toEqual({ topics: 'write', events: 'write' });
    const settings = { topics: LOGS_OF_RECORD, partitions: 4 };
    expect(await logRestoresOf(manifest, settings)).toEqual({ topics: 'write', events: 'write' });
    await expect(logRestoresOf(manifest, { ...settings, partitions: 8 })).rejects.toThrow(/8 partitions instead of 4/);
    // Of the same name, and empty: somebody cleaned it.
    expect(await logRestoresOf(manifest, await outside('a'))).toEqual({ topics: 'write', events: 'write' });
  });

  test('the tables of a backup go into engines of their own when these are empty, and stay tables without', async () => {
    const manifest = await backup();
    expect(await logRestoresOf(manifest, { topics: LOGS_OF_RECORD, partitions: 4 })).toEqual({
      topics: 'tables',
      events: 'tables',
    });
    const there = await outside('a');
    expect(await logRestoresOf(manifest, there)).toEqual({ topics: 'write', events: 'write' });
    await there.records.append(TOPIC, [follower(1)]);
    await expect(logRestoresOf(manifest, there)).rejects.toThrow(/platform-events is not empty, nor of the log/);
  });

  test.each<[string, RegExp, (other: Awaited<ReturnType<typeof outside>>) => Promise<unknown>]>([
    [
      'a topic that ends earlier',
      /no longer holds what was backed up: it ends at/,
      ({ records }) => records.append(TOPIC, [follower(1)]),
    ],
    [
      'a topic with other records',
      /its record \d+ is another one/,
      ({ records }) => records.append(TOPIC, [follower(1), follower(9), follower(17), follower(25)]),
    ],
    ['an event store that lost its events', /s@1 is not there/, (other) => happen(other)],
  ])('%s is refused although it has the same name', async (_what, line, fill) => {
    const here = await outside('a');
    await here.records.append(TOPIC, [follower(1), follower(1), follower(1)]);
    await happen(here);
    await happen(here);
    const manifest = await backedUp(here);
    const again = await outside('a');
    await fill(again);
    await expect(logRestoresOf(manifest, again)).rejects.toThrow(line);
  });

  test('engines of another name that hold anything are refused', async () => {
    const here = await outside('a');
    await here.records.append(TOPIC, [follower(1)]);
    await happen(here);
    const manifest = await backedUp(here);
    const other = await outside('b');
    await happen(other);
    await expect(logRestoresOf(manifest, other)).rejects.toThrow(/the event store is not empty, nor the one/);
    await other.records.append(TOPIC, [follower(1)]);
    await expect(logRestoresOf(manifest, other)).rejects.toThrow(/is not empty, nor of the log/);
  });
});

test('publishes that fail, that are stored and never answered, or stored twice: the log comes back in order, and places lead to the same records', async () => {
  const sent = Array.from({ length: 60 }, (_, n) => ({ ...follower(n), account_id: ACCOUNTS[0]! }));
  // A record of 100 KB each: what a publish may hold is bounded by bytes.
  await on.records.append(
    TOPIC,
    sent.map((one) => ({ ...one, raw: JSON.stringify('x'.repeat(100_000)) })),
  );
  const [partition, { next }] = [...(await on.broker.bounds(TOPIC))].find(([, bounds]) => bounds.next > 0)!;
  const stored: BrokerRecord[] = [];
  for await (const some of on.broker.read(TOPIC, partition, 0)) stored.push(...some);
  const fresh = await testDatabase();
  opened.push({ close: () => fresh.drop() });
  const to = await engines(fresh.db);
  opened.push(to);
  await fresh.db.query(
    `insert into checkpoints (projection, source, partition, engine, version, position)
     select 'at-' || n, $1, $2, 'old', 1, n from generate_series(0, $3::int) n`,
    [TOPIC, partition, next],
  );
  let publishes = 0;
  const failing: Broker = {
    ...to.broker,
    id: 'new',
    ensureTopics: (...given) => to.broker.ensureTopics(...given),
    bounds: (topic) => to.broker.bounds(topic),
    async publish(topic, records) {
      publishes += 1;
      expect(records.reduce((sum, { value }) => sum + value.length, 0)).toBeLessThan(1.2 * 1024 * 1024);
      if (publishes === 2) throw new Error('refused');
      const ends = await to.broker.publish(topic, records);
      if (publishes === 4) throw new Error('the answer was lost');
      if (publishes === 5) await to.broker.publish(topic, records);
      return ends;
    },
  };
  const parts = [...(await on.broker.bounds(TOPIC)).keys()].map((n) => ({
    partition: n,
    async *read() {
      if (n === partition) yield stored;
    },
  }));
  const options = { db: fresh.db, broker: failing, events: to.events, from: { broker: 'old', events: 'old' } };
  await restoreTopic({ ...options, report: () => undefined, late_ms: 10 }, { topic: TOPIC, partitions: parts });

  const back: BrokerRecord[] = [];
  for await (const some of to.broker.read(TOPIC, partition, 0)) back.push(...some);
  const firsts = new Map<string, number>();
  for (const { value, offset } of back) {
    const hash = sha256Of(value);
    if (!firsts.has(hash)) firsts.set(hash, offset);
  }
  expect([...firsts.keys()]).toEqual(stored.map(({ value }) => sha256Of(value)));
  expect(back.length).toBeGreaterThan(stored.length);
  const places = await fresh.db.query<{ projection: string; engine: string; position: string }>(
    'select projection, engine, position from checkpoints',
  );
  expect(places).toHaveLength(next + 1);
  for (const { projection, engine, position } of places) {
    const old = Number(projection.slice('at-'.length));
    const now = old === next ? back.length : firsts.get(sha256Of(stored[old]!.value))!;
    expect([projection, engine, position]).toEqual([projection, 'new', String(now)]);
  }
});

const pendingIn =
  ({ db }: TestDatabase) =>
  (erase: (hash: string) => Promise<unknown>) =>
    erasePending(db, erase);

test('noted erasures are applied since the last time, by the folders of their days', async () => {
  const subject_keys = createSubjectKeys({ db: t.db, master_keys });
  const listed: string[] = [];
  const counting: Blobs = Object.create(blobs);
  counting.keys = (prefix) => {
    listed.push(prefix);
    return blobs.keys(prefix);
  };
  const destroyNoted = (days?: readonly string[]) => applyNotedErasures(t.db, counting, days);
  const erasing = { ...on, db: t.db, blobs: counting, erasers: [], destroyNoted, erasePending: pendingIn(t) };
  const keyOf = async (n: number) => (await subject_keys.forWriting([person(n)])).get(person(n))!.key_id;
  const [old, fresh] = [await keyOf(1), await keyOf(2)];
  // As earlier releases named it.
  const note = JSON.stringify({ key_id: old, erased_at: new Date().toISOString() });
  await blobs.put(`erasures/${old}.json`, Buffer.from(note));
  expect(await reapplyErasures(erasing)).toBe(1);
  expect(listed.splice(0)).toEqual(['erasures/', 'erased-profiles/']);
  // A node of the previous release erases beside this one.
  const beside = await keyOf(4);
  await blobs.put(`erasures/${beside}.json`, Buffer.from(note.replace(old, beside)));
  expect(await reapplyErasures(erasing)).toBe(1);
  expect(listed.splice(0)).toEqual(['erasures/', 'erased-profiles/']);
  await t.db.query(`update installation set value = '2020-01-01' where name = 'erasures_first_applied'`);
  await noteErasures(blobs, [fresh], new Date().toISOString());
  await noteErasures(blobs, [await keyOf(3)], '2020-02-02T00:00:00Z');
  expect(await reapplyErasures(erasing)).toBe(1);
  expect(listed.every((prefix) => /^(erasures|erased-profiles)\/\d{4}-\d\d-\d\d\/$/.test(prefix))).toBe(true);
  expect(listed.length).toBeLessThan(10);
  expect(await reapplyErasures(erasing)).toBe(0);
  expect(await count(t.db, 'subject_keys')).toBe(1);
  expect(await count(t.db, 'subject_key_erasures')).toBe(3);
});

test('rows of a subject whose keys went by a note are erased by the next run where one fails', async () => {
  const subject_keys = createSubjectKeys({ db: t.db, master_keys });
  const key = (await subject_keys.forWriting([person(1)])).get(person(1))!.key_id;
  await noteErasures(blobs, [key], new Date().toISOString());
  let swept = 0;
  let killed = true;
  const erasing = {
    ...{ ...on, db: t.db, blobs, erasePending: pendingIn(t) },
    destroyNoted: (days?: readonly string[]) => applyNotedErasures(t.db, blobs, days),
    get erasers() {
      if (killed) throw new Error('killed');
      swept += 1;
      return [];
    },
  };
  await expect(reapplyErasures(erasing)).rejects.toThrow('killed');
  expect(await count(t.db, 'subject_keys')).toBe(0);
  killed = false;
  await reapplyErasures(erasing);
  expect(swept).toBe(1);
  await reapplyErasures(erasing);
  expect(swept).toBe(1);
});

async function buffer(key: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of (await target.get(key))!) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

test('keys of another installation, and keys after new ones were made, are refused', async () => {
  await on.records.append(TOPIC, [follower(1)]);
  const keys = await exported(t.db);
  await backup();
  const other = await testDatabase();
  opened.push({ close: () => other.drop() });
  await other.db.query(`update installation set value = gen_random_uuid()::text where name = 'id'`);
  await expect(importSubjectKeys({ db: other.db, secrets, blobs }, keys)).rejects.toThrow(/belong to installation/);
  const fresh = await restored();
  await createSubjectKeys({ db: fresh.db, master_keys }).forWriting(['kick:99']);
  await expect(importSubjectKeys({ db: fresh.db, secrets, blobs }, keys)).rejects.toThrow(/before the first start/);
});
