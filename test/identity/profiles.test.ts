import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { applyErasedProfiles, eraseProfile, readProfile, writeProfile } from '../../services/identity/profiles';
import { TOPICS } from '../../domain/common/records';
import { UPCASTERS } from '../../bin/areas';
import { userStream } from '../../domain/identity/users';
import { eventsInFile } from '../../engines/backup/log-sources';
import { backUpLogs } from '../../engines/backup/logs';
import { restoreEvents } from '../../engines/backup/restore-logs';
import type { Blobs } from '../../engines/blobs/port';
import { renewedEventStore, versionedEventStore } from '../../engines/event-store/decorators/versioned';
import { createPostgresLeases } from '../../engines/leases/postgres';
import { migrate } from '../../engines/postgres/migrate';
import { createRelayCodec } from '../../engines/records/relayed';
import { MIGRATIONS } from '../../migrations';
import { decodeSegment, encodeSegment } from '../../maintenance/archive/format';
import { domainEventRelay, relayedEvent } from '../../projections/runtime/relay/domain-event-relay';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { replayEvents } from '../../maintenance/archive/replay';
import { createTopicRelays } from '../../projections/runtime/relay/topic-relay';
import { users } from '../../projections/identity/users';
import { emptyDatabase, type TestDatabase, testDatabase } from '../support/database';
import { blobsOfEach, enginesOfEach } from '../support/each';
import { silentLog } from '../support/log';
import { engines, type Engines, noMetrics, runtimeOf, until } from '../support/projections';

const codec = { encode: encodeSegment, decode: decodeSegment };
const at = '2026-11-20T10:00:00.000Z';
/** As the build before wrote it. */
const first = (user_id: string, display_name: string) => ({
  id: uuid(),
  type: 'user:registered',
  data: { user_id, display_name, avatar_url: `https://pictures.example/${display_name}.png`, registered_at: at },
});

describe('the step that moves names out of the read model', () => {
  let t: TestDatabase;
  beforeEach(async () => void (t = await emptyDatabase()));
  afterEach(() => t.drop());

  test('takes them from users, and from the events where no read model is yet; a process of the build before goes on', async () => {
    const before = MIGRATIONS.map(({ name }) => name).filter((name) => name < '0021');
    await migrate(t.url, { only: before });
    const [ada, bob] = [uuid(), uuid()];
    await t.db.query(`insert into users values ($1, 'Ada', 'https://pictures.example/a.png', $2)`, [ada, at]);
    const old = [first(ada, 'Ada in her event'), first(bob, 'Bob')];
    for (const [n, { id, type, data }] of old.entries()) {
      await t.db.query(`insert into domain_events values ($1, $2, 0, $3, $4, $5, '{}', $6)`, [
        n + 1,
        userStream(data.user_id),
        id,
        type,
        JSON.stringify(data),
        at,
      ]);
    }
    await migrate(t.url);
    const rows = await t.db.query('select user_id, display_name, avatar_url from profiles order by display_name');
    expect(rows).toEqual([
      { user_id: ada, display_name: 'Ada', avatar_url: 'https://pictures.example/a.png' },
      { user_id: bob, display_name: 'Bob', avatar_url: 'https://pictures.example/Bob.png' },
    ]);
    expect(await t.db.query('select display_name, avatar_url from users')).toEqual([
      { display_name: null, avatar_url: null },
    ]);
    // What the projector of the build before runs, for an event of each version.
    await t.db.query(`insert into users (id, display_name, avatar_url, created_at) values ($1, $2, $3, $4)`, [
      uuid(),
      null,
      null,
      at,
    ]);
  });
});

describe('profiles', () => {
  let t: TestDatabase;
  let on: Engines;
  let blobs: Blobs;
  enginesOfEach((database, embedded) => ([t, on] = [database, embedded]), { connections: 20 });
  blobsOfEach((of) => (blobs = of));

  test('no reader is shown a name that an old event holds, and a new event holds none', async () => {
    const [ada, bob] = [uuid(), uuid()];
    await on.events.append([{ stream: userStream(ada), expected: 'none', events: [first(ada, 'Ada')] }], {});
    const events = versionedEventStore(on.events, UPCASTERS);
    const registered = { id: uuid(), type: 'user:registered', data: { user_id: bob, registered_at: at } };
    await events.append([{ stream: userStream(bob), expected: 'none', events: [registered] }], {});

    const bare = (user_id: string) => ({ user_id, registered_at: at });
    const [stored] = await events.read(userStream(ada));
    expect(stored!.data).toEqual(bare(ada));
    const relayed = relayedEvent(stored!, UPCASTERS);
    expect([relayed.version, JSON.parse(relayed.data!)]).toEqual([2, bare(ada)]);
    const replayed: unknown[] = [];
    for await (const batch of replayEvents({ events }, {})) replayed.push(...batch.map(({ data }) => data));
    expect(replayed).toEqual([bare(ada), bare(bob)]);
    const [row] = await t.db.query(`select data::text from domain_events where stream = $1`, [userStream(bob)]);
    expect(JSON.parse(row!.data as string)).toEqual({ ...bare(bob), $v: 2 });

    const runtime = runtimeOf(t.db, { ...on, events }, [users]);
    await runtime.start();
    const rows = () => t.db.query('select id, display_name, avatar_url from users order by id');
    await until(async () => (await rows()).length === 2);
    expect(await rows()).toEqual([ada, bob].map((id) => ({ id, display_name: null, avatar_url: null })));
    await runtime.stop();
  });

  test('a copy of old events into another store leaves the names behind, and so does one of new events', async () => {
    const events = renewedEventStore(on.events, UPCASTERS);
    const [ada, bob] = [uuid(), uuid()];
    await on.events.append([{ stream: userStream(ada), expected: 'none', events: [first(ada, 'Ada')] }], {});
    const [old] = await on.events.read(userStream(ada));
    const logs = await backUpLogs(blobs, '', { codec, events }, [], () => undefined);

    const t2 = await testDatabase(10);
    const there = await engines(t2.db);
    const to = { db: t2.db, broker: there.broker, events: renewedEventStore(there.events, UPCASTERS) };
    const options = { ...to, from: { broker: 'a', events: 'b' }, report: () => undefined };
    try {
      await restoreEvents(options, eventsInFile(blobs, logs.events!));
      // A backup of the build before: no mark, and the names.
      const stream = userStream(bob);
      const before = { ...old!, id: uuid(), stream, data: { ...old!.data, user_id: bob } };
      const read = async function* () {
        yield before;
      };
      await restoreEvents(options, { places: {}, read });
      for (const user_id of [ada, bob]) {
        const [stored] = await there.events.read(userStream(user_id));
        expect(stored!.data).toEqual({ user_id, registered_at: at, $v: 2 });
      }
    } finally {
      await there.close();
      await t2.drop();
    }
  });

  test('what the guide says cleans a database from before, the relayed topic too', async () => {
    const ada = uuid();
    const events = versionedEventStore(on.events, UPCASTERS);
    await on.events.append([{ stream: userStream(ada), expected: 'none', events: [first(ada, 'Canary')] }], {});
    const [old] = await on.events.read(userStream(ada));
    await on.broker.publish(TOPICS.domain_events, [{ key: old!.stream, value: Buffer.from(JSON.stringify(old)) }]);
    await t.db.query(
      `insert into checkpoints (projection, source, partition, engine, version, position) values ($1, $2, 0, $3, 1, $4)`,
      [`relay to ${on.broker.id}`, TOPICS.domain_events, on.events.id, old!.position],
    );
    await t.db.query(
      `insert into dead_letters (projection, source, partition, position, type, event, reason, error)
       values ('users', 'domain-events', 0, $1, $2, $3, 'poison', '')`,
      [old!.position, old!.type, JSON.stringify(old)],
    );
    const guide = readFileSync(join(__dirname, '../../docs/operating/backup.md'), 'utf8');
    const steps = /```sql\n([^]*?)```/.exec(guide)![1]!;
    const client = await t.db.pool.connect();
    try {
      const [change, vacuum] = steps.split(/(?=^vacuum)/m);
      await client.query(change!);
      await client.query(vacuum!);
    } finally {
      client.release();
    }
    for (const table of ['domain_events', 'dead_letters', 'broker_records'])
      expect([table, JSON.stringify(await t.db.query(`select t::text from ${table} t`))]).not.toEqual([
        table,
        expect.stringMatching(/Canary|43616e617279/),
      ]);
    expect((await events.read(userStream(ada)))[0]!.data).toEqual({ user_id: ada, registered_at: at });
    const [letter] = await t.db.query(`select event->'data' as data from dead_letters`);
    expect(JSON.parse(letter!.data as string)).toEqual({ user_id: ada, registered_at: at, $v: 2 });

    const leases = createPostgresLeases({ db: t.db, log: silentLog, ttl_ms: 15_000 });
    const relays = createTopicRelays({
      ...{ db: t.db, broker: on.broker, leases, wakeups: on.wakeups, log: silentLog, metrics: noMetrics, poll_ms: 50 },
      sources: [
        domainEventRelay({
          ...{ db: t.db, stored_events: on.events, upcasters: UPCASTERS },
          ...{ broker_id: on.broker.id, codec: createRelayCodec() },
        }),
      ],
    });
    const relayed = async () => {
      const found: Buffer[] = [];
      for (const [partition, { earliest }] of await on.broker.bounds(TOPICS.domain_events))
        for await (const page of on.broker.read(TOPICS.domain_events, partition, earliest))
          found.push(...page.map(({ value }) => value));
      return found;
    };
    try {
      await until(async () => (await relayed()).length === 1);
      expect((await relayed())[0]!.toString()).toContain(ada);
    } finally {
      await relays.stop();
    }
  });

  test('stay through a rebuild of users', async () => {
    const ada = { user_id: uuid(), display_name: 'Ada', avatar_url: null, email: null };
    await writeProfile(t.db, ada);
    const events = versionedEventStore(on.events, UPCASTERS);
    const registered = { id: uuid(), type: 'user:registered', data: { user_id: ada.user_id, registered_at: at } };
    await events.append([{ stream: userStream(ada.user_id), expected: 'none', events: [registered] }], {});
    const runtime = runtimeOf(t.db, { ...on, events }, [users]);
    await runtime.start();
    await until(async () => (await t.db.query('select 1 as one from users')).length === 1);
    await runtime.stop();
    await rebuild({ db: t.db, ...on, events, projections: [users], name: 'users' });
    expect(await readProfile(t.db, ada.user_id)).toEqual(ada);
  });

  test('are written over, erased, and stay erased when a backup brings their row back', async () => {
    const [ada, bob] = ['Ada', 'Bob'].map((display_name) => ({
      user_id: uuid(),
      display_name,
      avatar_url: null,
      email: null,
    }));
    for (const one of [ada!, bob!]) await writeProfile(t.db, one);
    const later = { display_name: 'Ada L.', avatar_url: 'https://pictures.example/l.png', email: 'ada@example.com' };
    await writeProfile(t.db, { ...ada!, ...later });
    expect(await readProfile(t.db, ada!.user_id)).toEqual({ user_id: ada!.user_id, ...later });
    await t.db.query('create table backed_up as table profiles');
    expect(await eraseProfile({ db: t.db, blobs }, ada!.user_id)).toBe(true);
    expect(await eraseProfile({ db: t.db, blobs }, ada!.user_id)).toBe(false);
    expect(await readProfile(t.db, ada!.user_id)).toBeNull();

    await t.db.query('truncate profiles');
    await t.db.query('insert into profiles table backed_up');
    expect(await applyErasedProfiles({ db: t.db, blobs })).toBe(1);
    expect(await readProfile(t.db, ada!.user_id)).toBeNull();
    expect(await readProfile(t.db, bob!.user_id)).toEqual(bob);
    // Who comes back after their erasure is a person like any other.
    await writeProfile(t.db, ada!);
    expect(await applyErasedProfiles({ db: t.db, blobs })).toBe(0);
    expect(await readProfile(t.db, ada!.user_id)).toEqual(ada);
  });
});
