import { v7 as uuid } from 'uuid';
import { ERASED_RAW, TOPICS, type RecordEnvelope } from '../../domain/common/records';
import { createRecordLog } from '../../engines/records/log';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { eraseSubject, type ErasureDeps } from '../../privacy/erasure/erasure';
import { eventLog } from '../../projections/events/events';
import { eventLogEraser } from '../../privacy/erasure/events';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { shardOf } from '../../lib/hash/shards';
import { withRebuildLock } from '../../projections/runtime/rebuild/lock';
import type { TestDatabase } from '../support/database';
import { enginesOfEach } from '../support/each';
import { testParked } from '../support/parked';
import { ACCOUNTS, engines, type Engines, record, runtimeOf, until } from '../support/projections';

const TOPIC = TOPICS.platform_events;
const master_keys = parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`);
let t: TestDatabase;
let on: Engines;

enginesOfEach((database, embedded) => ([t, on] = [database, embedded]), { connections: 20 });

const event = (n: number, person: number): RecordEnvelope => ({
  ...record(ACCOUNTS[n % 8]!, ''),
  external_id: `kick:${uuid()}`,
  subject: `kick:${person}`,
  raw: JSON.stringify({ follower: { user_id: person, name: `canary-${person}` } }),
});
const everything = () =>
  t.db.query(
    'select id, account_id, type, platform, external_id, user_id, raw::text, created_at from platform_event_logs order by id',
  );
const applied = (count: number) => until(async () => (await everything()).length === count);

/** As another process does it, which tells nobody; `said` happens when the keys are gone. */
function erase(person: number, { said, ...options }: Partial<ErasureDeps> & { said?: () => Promise<void> } = {}) {
  const subject_keys = createSubjectKeys({ db: t.db, master_keys });
  return eraseSubject(
    {
      db: t.db,
      broker: on.broker,
      records: createRecordLog({ broker: on.broker, subject_keys }),
      subject_keys,
      erasers: [eventLogEraser],
      async destroyKeys(subject) {
        const keys = await subject_keys.erase(subject);
        await said?.();
        return keys;
      },
      keys_cached_ms: 5200,
      ...options,
    },
    `kick:${person}`,
  );
}

test('what is said under a new key while nodes forget the old one stays, live as in a rebuild', async () => {
  const runtime = runtimeOf(t.db, on, [eventLog]);
  await runtime.start();
  await on.records.append(TOPIC, [event(0, 7), event(1, 8)]);
  await applied(2);
  // A node that never held the old key.
  const other = await engines(t.db);
  const say = async (n: number) => {
    await other.records.append(TOPIC, [event(n, 7)]);
    await applied(n + 1);
  };
  try {
    const erasing = erase(7, { keys_cached_ms: 1_000, said: () => say(2) });
    await until(async () => (await everything()).some(({ raw }) => raw === ERASED_RAW));
    await say(3);
    expect(await erasing).toMatchObject({ keys: 1, records: 1, rows: 1, messages: 1 });
    await runtime.stop();
    const live = await everything();
    expect(live.map(({ user_id }) => user_id)).toEqual([null, '8', '7', '7']);
    await rebuild({ db: t.db, ...other, projections: [eventLog], name: 'event-log' });
    expect(await everything()).toEqual(live);
  } finally {
    await other.close();
  }
});

test('it searches only the messages of the shards of the accounts that the person wrote to', async () => {
  const runtime = runtimeOf(t.db, on, [eventLog]);
  await runtime.start();
  await on.records.append(TOPIC, [event(0, 7), event(1, 7), event(2, 8)]);
  await applied(3);
  await runtime.stop();
  const searched: unknown[] = [];
  const db: TestDatabase['db'] = Object.assign(Object.create(t.db) as TestDatabase['db'], {
    async transaction(...[work, ...rest]: Parameters<TestDatabase['db']['transaction']>) {
      return t.db.transaction(
        (tx) => {
          const query: typeof tx.query = (text, values, name) => {
            if (text.includes('update outbox')) searched.push(...(values![2] as number[]));
            return tx.query(text, values, name);
          };
          return work({ query });
        },
        ...rest,
      );
    },
  });
  expect(await erase(7, { db, keys_cached_ms: 0 })).toMatchObject({ records: 2, rows: 2, messages: 2 });
  const shards = [0, 1].map((n) => shardOf(`events:${ACCOUNTS[n]!}`));
  expect(new Set(searched)).toEqual(new Set([...shards, 64]));
});

test('during a rolling upgrade it waits for a batch of the previous release, which no fence refuses', async () => {
  await t.db.query(
    `update schema_migrations set migration_time = migration_time - interval '30 days'
     where name <> '0296-checkpoint-erasures'`,
  );
  let frozen = false;
  let release!: () => void;
  const thawed = new Promise<void>((resolve) => (release = resolve));
  let held = 0;
  // The compare-and-set of the previous release does not name the erasures.
  const FENCE = 'and c.erasures = coalesce(m.erasures, c.erasures)';
  const db: TestDatabase['db'] = Object.assign(Object.create(t.db) as TestDatabase['db'], {
    async transaction(...[work, ...rest]: Parameters<TestDatabase['db']['transaction']>) {
      if (frozen) {
        held += 1;
        await thawed;
      }
      return t.db.transaction(
        (tx) => {
          const query: typeof tx.query = (text, values, name) =>
            text.includes(FENCE) ? tx.query(text.replace(FENCE, ''), values) : tx.query(text, values, name);
          return work({ query });
        },
        ...rest,
      );
    },
  });
  const runtime = runtimeOf(db, on, [eventLog]);
  await runtime.start();
  await on.records.append(TOPIC, [event(0, 7)]);
  await applied(1);
  frozen = true;
  await on.records.append(TOPIC, [event(1, 7)]);
  await until(() => held > 0);
  let waits!: () => void;
  const waiting = new Promise<void>((resolve) => (waits = resolve));
  const erasing = erase(7, {
    keys_cached_ms: 0,
    onProgress: ({ what }) => {
      if (what.includes('previous release')) waits();
    },
  });
  await Promise.race([waiting, erasing]);
  frozen = false;
  release();
  expect(await erasing).toMatchObject({ keys: 1, records: 2 });
  await applied(2);
  await runtime.stop();
  expect((await everything()).map(({ user_id }) => user_id)).toEqual([null, null]);
  expect(JSON.stringify(await t.db.query('select data from outbox'))).not.toContain('canary-7');
});

test('it waits for a rebuild that runs, and runs again without effect', async () => {
  await t.db.query(`select ensure_outbox_partitions('3 minutes')`);
  const runtime = runtimeOf(t.db, on, [eventLog]);
  await runtime.start();
  await on.records.append(
    TOPIC,
    Array.from({ length: 30 }, (_, n) => event(n, n % 3)),
  );
  await applied(30);
  // Its messages lie in two partitions: those of an earlier time have none of their own.
  await t.db.query(`update outbox set created_at = created_at - interval '5 minutes' where seq % 2 = 0`);
  expect(await t.db.query('select distinct tableoid from outbox')).toHaveLength(2);
  let running: Promise<unknown> | undefined;
  await withRebuildLock(t.db, 'event-log', async () => {
    running = erase(1, { keys_cached_ms: 0 });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await everything()).filter(({ raw }) => raw === ERASED_RAW)).toHaveLength(0);
    await expect(erase(2, { keys_cached_ms: 0, patience_ms: 100 })).rejects.toThrow(/rebuild of event-log is running/);
  });
  expect(await running).toMatchObject({ keys: 1, records: 10, rows: 10, messages: 10 });
  expect(await erase(1, { keys_cached_ms: 0 })).toEqual({ keys: 0, records: 10, rows: 0, messages: 0 });
  expect(await erase(99, { keys_cached_ms: 0 })).toEqual({ keys: 0, records: 0, rows: 0, messages: 0 });
  await runtime.stop();
});

test('parked webhooks that mention the person go, those that only look like it stay', async () => {
  const parked = testParked(t.db);
  const park = (vendor: 'kick' | 'trovo', body: string) =>
    parked.park({
      vendor,
      reason: 'bad_json',
      detail: '',
      headers: {},
      raw_body: Buffer.from(body),
      trace: null,
      received_at: Date.now(),
    });
  await park('kick', '{"user_id": 123');
  await park('kick', '{"name": "123"');
  await park('kick', '{"user_id": 91234');
  await park('kick', '{"id": "a-123"');
  await park('trovo', '{"user_id": 123');
  expect(await parked.erase('kick', '123')).toBe(2);
  expect(await parked.erase('kick', '.*')).toBe(0);
  expect((await parked.list()).map(({ vendor }) => vendor)).toEqual(['kick', 'kick', 'trovo']);
});
