import { v7 as uuid } from 'uuid';
import { ERASED_RAW, TOPICS, type RecordEnvelope } from '../../../domain/common/records';
import { createRecordLog } from '../../../engines/records/log';
import { createSubjectKeys } from '../../../privacy/subject-keys/postgres';
import { parseMasterKeys } from '../../../privacy/secrets/master-keys';
import { eraseSubject, type ErasureDeps } from '../../../privacy/erasure/erasure';
import { eventLog } from '../../../projections/events/events';
import { eventLogEraser } from '../../../privacy/erasure/events';
import { rebuild } from '../../../projections/runtime/rebuild/rebuild';
import type { TestDatabase } from '../../support/database';
import { enginesOfEach } from '../../support/each';
import { ACCOUNTS, type Engines, record, runtimeOf, until } from '../../support/projections';
import { keptMetrics } from '../../support/webhooks';

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

/** Erases as another process, without a notification; `said` runs when the keys are gone. */
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

test('under live traffic about the person, nothing clear of them is left, and the live rows are what a rebuild makes', async () => {
  const runtime = runtimeOf(t.db, on, [eventLog]);
  await runtime.start();
  await on.records.append(
    TOPIC,
    Array.from({ length: 200 }, (_, n) => event(n, n % 20)),
  );
  await applied(200);
  const before = await everything();
  let sent = 200;
  let stop = false;
  const writing = (async () => {
    // A node that writes under the key that it holds, until it receives the erasure.
    while (!stop) {
      await on.records.append(TOPIC, [event(sent, 7), event(sent, 70)]);
      sent += 2;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  let gone = false;
  const erasing = erase(7, { said: async () => void (gone = true) });
  await until(() => gone);
  // The writer receives the erasure within seconds, and continues under a new key.
  const keysOf = () => createSubjectKeys({ db: t.db, master_keys }).keysOf('kick:7');
  await until(async () => (await keysOf()).length === 1);
  const [new_key_at, enough] = [sent, 4];
  await until(() => sent >= new_key_at + enough);
  stop = true;
  await writing;
  const erased = await erasing;
  await applied(sent);
  await runtime.stop();
  expect(erased.keys).toBe(1);
  expect(erased.rows).toBeGreaterThan(10);
  const live = await everything();
  const others = (rows: typeof live) =>
    rows.filter(({ raw }) => raw !== ERASED_RAW && !/canary-7"/.test(raw as string));
  expect(others(live)).toHaveLength(190 + (sent - 200) / 2);
  expect(before.filter(({ user_id }) => user_id !== '7')).toEqual(others(live).slice(0, 190));
  // Later events, after every node has received the erasure, are about a new person, under a new key.
  const clear = live.filter(({ raw }) => /canary-7"/.test(raw as string));
  expect(clear.length).toBeGreaterThan(0);
  expect(await keysOf()).toHaveLength(1);
  for (const { raw, user_id } of live.filter((row) => row.raw === ERASED_RAW))
    expect([raw, user_id]).toEqual([ERASED_RAW, null]);
  const messages = await t.db.query('select channel, seq, data from outbox order by id');
  expect(messages).toHaveLength(sent);
  const erased_ids = new Set(live.filter(({ raw }) => raw === ERASED_RAW).map(({ id }) => id as string));
  const of_erased = messages
    .map(({ data }) => JSON.parse(data as string) as { id: string; payload: unknown })
    .filter(({ id }) => erased_ids.has(id));
  expect(of_erased.length).toBeGreaterThan(0);
  for (const { payload } of of_erased) expect(payload).toBe('[erased]');
  await rebuild({ db: t.db, ...on, projections: [eventLog], name: 'event-log' });
  expect(await everything()).toEqual(live);
});

test('a batch that was decoded before and is held beyond the end of the erasure writes nothing clear', async () => {
  const metrics = keptMetrics();
  let frozen = false;
  let release!: () => void;
  const thawed = new Promise<void>((resolve) => (release = resolve));
  let held = 0;
  // As a process that is stopped between decoding a batch and its transaction.
  const db: TestDatabase['db'] = Object.assign(Object.create(t.db) as TestDatabase['db'], {
    async transaction(...given: Parameters<TestDatabase['db']['transaction']>) {
      if (frozen) {
        held += 1;
        await thawed;
      }
      return t.db.transaction(...given);
    },
  });
  const runtime = runtimeOf(db, on, [eventLog], { metrics });
  await runtime.start();
  await on.records.append(TOPIC, [event(0, 7)]);
  await applied(1);
  frozen = true;
  await on.records.append(TOPIC, [event(1, 7), event(2, 8)]);
  await until(() => held > 0);
  expect(await erase(7)).toMatchObject({ keys: 1, records: 2, rows: 1 });
  frozen = false;
  release();
  await applied(3);
  await runtime.stop();
  expect((await everything()).map(({ user_id }) => user_id)).toEqual([null, null, '8']);
  const restarts = [...metrics.counts].filter(([name]) => name.startsWith('lumio_projection_restarts_total'));
  expect(restarts).toEqual([]);
  expect(JSON.stringify(await t.db.query('select data from outbox'))).not.toContain('canary-7');
});
