import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createS3Blobs } from '../../engines/blobs/s3';
import type { Blobs } from '../../engines/blobs/port';
import { createKurrentEventStore } from '../../engines/event-store/kurrentdb/store';
import type { EventStore } from '../../engines/event-store/port';
import { type Ends, eventStoreEnds, kafkaEnds } from '../faults/support/ends';
import { SEED, until } from '../faults/support/dose';
import { checkInvariant } from '../faults/support/invariants';
import { Lumio } from '../faults/support/lumio';
import { both, copyOf, nothing, type Sent, Traffic } from '../faults/support/traffic';
import { driveAllDoors } from '../support/all-doors';
import { emptyDatabase, type TestDatabase } from '../support/database';
import { runLumio, settingsOf } from '../support/server';
import { VendorCloud } from '../support/vendor-cloud';
import { type Kafka, startKafka } from './support/kafka';
import { type Kurrent, startKurrent } from './support/kurrentdb';
import { freePort } from './support/process';
import { type S3Server, startS3 } from './support/s3';

const REAL = process.env['KURRENTDB_URL'];

/** Everything outside one process: records in Kafka, domain events in KurrentDB, blobs and the backup in S3. */
describe(`backup and restore on Kafka, KurrentDB (${REAL ? 'a real server' : 'the test server'}) and S3`, () => {
  let s3: S3Server;
  let blobs: Blobs;
  const kafkas: Kafka[] = [];
  const kurrents: Kurrent[] = [];
  const stores: EventStore[] = [];
  const databases: TestDatabase[] = [];
  const lives: Lumio[] = [];
  let server: Lumio;
  let promised: Sent;
  let nightly: string;
  const folder = mkdtempSync(join(tmpdir(), 'lumio-backup-system-'));
  const keys = join(folder, 'keys.json');
  const secrets = { LUMIO_SECRETS__KEYS: `test:${Buffer.alloc(32, 9).toString('base64')}` };

  /** An empty database for another life of the installation, with its blobs. */
  async function embedded(): Promise<Life> {
    const database = await emptyDatabase();
    databases.push(database);
    const env = { ...secrets, LUMIO_BLOBS__URL: s3.url('blobs') };
    return { database_url: database.url, data_dir: join(folder, 'data'), env };
  }

  /** The same on logs of their own, empty too, and what checks must know of them. */
  async function engines(kurrent_url?: string): Promise<Life> {
    const { env, ...life } = await embedded();
    const kafka = await startKafka();
    kafkas.push(kafka);
    if (!kurrent_url) kurrents.push(await startKurrent());
    const event_store = kurrent_url ?? kurrents.at(-1)!.url;
    const events = await createKurrentEventStore({ url: event_store });
    stores.push(events);
    return {
      ...life,
      env: { ...env, LUMIO_BROKER__URL: kafka.url, LUMIO_EVENT_STORE__URL: event_store },
      ends: { ...kafkaEnds(kafka.url), ...eventStoreEnds(events) },
    };
  }

  /** Starts a restored installation, loads it, and holds it to what was promised before and since, which it returns. */
  async function goesOn(life: Life, name: string, before: Sent): Promise<{ lumio: Lumio; promised: Sent }> {
    const lumio = await Lumio.start(life);
    lives.push(lumio);
    expect(lumio.credentials.account_id).toBe(server.credentials.account_id);
    const traffic = new Traffic(lumio, { seed: SEED, name }).start();
    // What vendors deliver again has no second effect.
    const vendors = new VendorCloud(lumio.base_url, lumio.credentials);
    for (const id of PEOPLE) expect((await vendors.trovo(person(id))).status).toBe(200);
    await until(() => traffic.acked > 200, 'traffic after the restore');
    const promised = both(before, await traffic.stop());
    await checkInvariant(lumio, promised, { announced: (id) => id.startsWith(name) });
    const readable = `select external_id from platform_event_logs where raw::text like '%canary-%' order by 1`;
    expect(await lumio.query(readable)).toEqual([{ external_id: 'trovo:person-w0-3' }]);
    return { lumio, promised };
  }

  beforeAll(async () => {
    s3 = await startS3(await freePort());
    blobs = await createS3Blobs(s3.url('blobs'));
    server = await Lumio.start(await engines(REAL));
    lives.push(server);
  });
  afterAll(async () => {
    for (const life of lives) await life.dispose();
    for (const store of stores) await store.close();
    for (const database of databases) await database.drop();
    await blobs?.close();
    for (const kurrent of kurrents) kurrent.stop();
    for (const kafka of kafkas) await kafka.kill();
    await s3?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('taken under traffic, it fills fresh engines: all that was acknowledged before it is there once, and the tail goes on', async () => {
    const vendors = new VendorCloud(server.base_url, server.credentials);
    const traffic = new Traffic(server, { seed: SEED, name: 'before' }).start();
    for (const id of PEOPLE) expect((await vendors.trovo(person(id))).status).toBe(200);
    await blobs.put('sounds/horn.mp3', Buffer.from('toot'), 'audio/mpeg');
    await until(() => traffic.acked > 500, 'traffic');
    expect(await server.command('erase', 'trovo:canary-1')).toMatchObject({ code: 0 });

    promised = copyOf(traffic.sent);
    promised.lanes.set(
      'person-w0',
      PEOPLE.map((id) => person(id).message_id),
    );
    for (const id of PEOPLE) promised.tried.add(person(id).message_id);
    nightly = s3.url('nightly');
    const backup = await server.command('backup', nightly, '--with-blobs');
    expect(backup).toMatchObject({ code: 0, stdout: expect.stringMatching(/tables, \d+ rows/) });
    expect(await server.command('backup', 'verify', nightly)).toMatchObject({ code: 0 });
    expect(await server.command('keys', 'export', keys)).toMatchObject({ code: 0 });
    // After both were taken: only the note in the bucket knows.
    expect(await server.command('erase', 'trovo:canary-2')).toMatchObject({ code: 0 });
    const acked = traffic.acked;
    await until(() => traffic.acked > acked + 100, 'traffic beyond the backup');
    // What was sent since is lost with everything else, or not: the logs were copied a little later than the backup
    // began.
    const { tried, violations, ...since } = await traffic.stop();
    const only = (made: { tried: Set<string> }) => ({ acked: new Set<string>(), tried: made.tried });
    const unsure = { keys: only(since.keys), payments: only(since.payments), chat: only(since.chat) };
    promised = both(promised, { ...nothing(), ...unsure, tried, violations });
    expect(await server.stop()).toBe(0);
    await blobs.delete('sounds/horn.mp3');

    const fresh = await engines(process.env['KURRENTDB_FRESH_URL']);
    expect(await runIn(fresh, 'restore', nightly, '--keys', keys)).toMatchObject({
      stderr: '',
      code: 0,
      stdout: expect.stringMatching(/1 blobs copied[^]*erased and left out/),
    });
    const { lumio } = await goesOn(fresh, 'fresh', promised);
    expect(await blobs.head('sounds/horn.mp3')).toBeDefined();
    expect(await lumio.query('select 1 from broker_records union all select 1 from domain_events')).toEqual([]);
    await driveAllDoors(lumio);
    expect(await lumio.stop()).toBe(0);

    const used = await runIn(fresh, 'restore', nightly);
    expect(used).toMatchObject({ code: 1, stderr: expect.stringMatching(/the database is not empty/) });
    const empty = { ...(await embedded()), env: fresh.env };
    const foreign = await runIn(empty, 'restore', nightly);
    expect(foreign).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/not empty, nor of the log that was backed up/),
    });
    // Said before anything was written.
    const tables = `select 1 from pg_tables where schemaname = 'public'`;
    expect(await databases.at(-1)!.db.query(tables)).toEqual([]);
  });

  test('logs of their own come back into the database alone, and tables go into engines of their own', async () => {
    const alone = await embedded();
    expect(await runIn(alone, 'restore', nightly, '--keys', keys)).toMatchObject({ stderr: '', code: 0 });
    const before = await goesOn(alone, 'alone', promised);
    const grown = join(folder, 'grown');
    const grown_keys = join(folder, 'grown-keys.json');
    expect(await before.lumio.command('backup', grown)).toMatchObject({ code: 0 });
    expect(await before.lumio.command('keys', 'export', grown_keys)).toMatchObject({ code: 0 });
    expect(await before.lumio.stop()).toBe(0);

    const moved = await engines();
    expect(await runIn(moved, 'restore', grown, '--keys', grown_keys)).toMatchObject({ stderr: '', code: 0 });
    const after = await goesOn(moved, 'moved', before.promised);
    expect(await after.lumio.query('select 1 from broker_records union all select 1 from domain_events')).toEqual([]);
    await driveAllDoors(after.lumio);
  });
});

const PEOPLE = ['1', '2', '3'];
const person = (id: string) => ({ type: 'channel.spell', message_id: `person-w0-${id}`, uid: `canary-${id}` });

/** What a life of the installation runs on. */
interface Life {
  database_url: string;
  data_dir: string;
  env: Record<string, string>;
  ends?: Partial<Ends>;
}

/** A command of an installation that does not run. */
const runIn = ({ env, data_dir, database_url }: Life, ...args: string[]) =>
  runLumio(args, { ...settingsOf(data_dir), ...env, LUMIO_DATABASE__URL: database_url });
