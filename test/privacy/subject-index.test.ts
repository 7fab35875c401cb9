import { v7 as uuid } from 'uuid';
import { ERASED_RAW, TOPICS } from '../../domain/common/records';
import type { Blobs } from '../../engines/blobs/port';
import type { Broker } from '../../engines/broker/port';
import { createEnvelopeCodec } from '../../engines/records/schemas';
import { createArchiver } from '../../maintenance/archive/archive';
import { createArchiveReader } from '../../maintenance/archive/reader';
import { eraseSubject, type ErasureDeps } from '../../privacy/erasure/erasure';
import { eventLogEraser } from '../../privacy/erasure/events';
import { indexEvents, indexTopic, placesOf, streamsOf } from '../../maintenance/archive/subject-index';
import { eventLog } from '../../projections/events/events';
import type { TestDatabase } from '../support/database';
import { blobsOfEach, enginesOfEach } from '../support/each';
import { silentLog } from '../support/log';
import { ACCOUNTS, type Engines, noMetrics, record, runtimeOf, until } from '../support/projections';

const TOPIC = TOPICS.platform_events;
let t: TestDatabase;
let on: Engines;
let blobs: Blobs;
enginesOfEach((database, embedded) => ([t, on] = [database, embedded]), { connections: 20 });
blobsOfEach((of) => (blobs = of));

/** Records of one account, the nth about the person that `about` says. */
async function publish(count: number, about: (n: number) => string): Promise<void> {
  const records = Array.from({ length: count }, (_, n) => ({
    ...record(ACCOUNTS[0]!, n),
    external_id: `kick:${uuid()}`,
    subject: `kick:${about(n)}`,
  }));
  for (let at = 0; at < count; at += 1000) await on.records.append(TOPIC, records.slice(at, at + 1000));
}
const others = (n: number) => `other-${n % 500}`;

/** Counts the records that are read of the topic, and the archive's segments. */
function counting(): { deps: Partial<ErasureDeps>; read: () => number; opened: () => number } {
  let [read, opened] = [0, 0];
  const broker = new Proxy(on.broker, {
    get(target, name) {
      if (name === 'read')
        return async function* (...args: Parameters<Broker['read']>) {
          for await (const some of target.read(...args)) {
            read += some.length;
            yield some;
          }
        };
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? (member as () => unknown).bind(target) : member;
    },
  });
  const counted = {
    head: (key: string) => blobs.head(key),
    get(key: string) {
      opened += 1;
      return blobs.get(key);
    },
  };
  const readArchived = createArchiveReader({ db: t.db, blobs: counted, broker });
  return { deps: { broker, readArchived }, read: () => read, opened: () => opened };
}

async function erase(person: string): Promise<{ records: number; read: number; opened: number }> {
  const { deps, read, opened } = counting();
  const destroyKeys = (subject: string) => on.subject_keys.erase(subject);
  const all = { db: t.db, ...on, erasers: [eventLogEraser], destroyKeys, keys_cached_ms: 0, ...deps };
  const { records } = await eraseSubject(all, `kick:${person}`);
  return { records, read: read(), opened: opened() };
}
const rows = async (raw: string) =>
  Number((await t.db.query('select count(*) as n from platform_event_logs where raw::text = $1', [raw]))[0]!['n']);

test('what an erasure reads grows with the person, not with the log, from the topic and from the archive', async () => {
  const runtime = runtimeOf(t.db, on, [eventLog]);
  await runtime.start();
  const applied = (count: number) =>
    until(async () => Number((await t.db.query('select count(*) as n from platform_event_logs'))[0]!['n']) === count);
  await publish(2000, (n) => (n < 60 && n % 6 === 0 ? `person-${(n / 6) % 2}` : others(n)));
  await applied(2000);
  // The first time everything is read once, for everybody; the worker does it each hour.
  await indexTopic({ db: t.db, ...on }, TOPIC);
  const small = await erase('person-0');
  expect(small).toMatchObject({ records: 5, opened: 0 });
  expect(await rows(ERASED_RAW)).toBe(5);

  await publish(10_000, (n) => (n < 60 && n % 6 === 0 ? `person-${2 + ((n / 6) % 2)}` : others(n)));
  await applied(12_000);
  await indexTopic({ db: t.db, ...on }, TOPIC);
  const large = await erase('person-1');
  expect(large.records).toBe(5);
  expect(large.read).toBeGreaterThan(0);
  expect(large.read).toBeLessThanOrEqual(2 * small.read);
  expect(large.read).toBeLessThan(12_000 / 4);

  await createArchiver({
    ...{ db: t.db, broker: on.broker, blobs, projections: [eventLog], topics: [TOPIC], log: silentLog },
    ...{ metrics: noMetrics, after_ms: 0, linger_ms: 0, trim: true, segment_records: 500 },
  }).run();
  const segments = Number((await t.db.query('select count(*) as n from archive_segments'))[0]!['n']);
  expect(segments).toBeGreaterThan(20);
  const archived = await erase('person-2');
  expect(archived.records).toBe(5);
  expect(archived.opened).toBeGreaterThan(0);
  expect(archived.opened).toBeLessThanOrEqual(4);
  expect(await rows(ERASED_RAW)).toBe(15);
  await runtime.stop();
});

test('no record names its person in clear, and one of a build before is found all the same', async () => {
  await publish(1, () => 'new');
  const key = (await on.subject_keys.forWriting(['kick:old'])).get('kick:old')!;
  const codec = createEnvelopeCodec();
  const old = { ...record(ACCOUNTS[0]!, 1), subject: 'kick:old', key_id: key.key_id, raw: Buffer.from('sealed') };
  await on.broker.publish(TOPIC, [{ key: old.account_id, value: codec.encode(old) }]);
  const stored = await t.db.query<{ value: Buffer }>('select value from broker_records order by "offset"');
  expect(stored.map(({ value }) => value.includes('kick:new'))).toEqual([false, false]);

  expect(await indexTopic({ db: t.db, ...on }, TOPIC)).toBe(2);
  const hashes = await on.subject_keys.hashesOf(['kick:old', 'kick:new', 'kick:nobody']);
  const found = await Promise.all([...hashes.values()].map((hash) => placesOf({ db: t.db, ...on }, TOPIC, hash)));
  expect(found.map((places) => places.length)).toEqual([1, 1, 0]);
});

test('a record that cannot be decoded may be about anybody: its block is looked at for each', async () => {
  await publish(1, () => 'ada');
  await on.broker.publish(TOPIC, [{ key: ACCOUNTS[1]!, value: Buffer.from('of another build') }]);
  await indexTopic({ db: t.db, ...on }, TOPIC);
  const hashes = await on.subject_keys.hashesOf(['kick:ada', 'kick:nobody']);
  const found = await Promise.all([...hashes.values()].map((hash) => placesOf({ db: t.db, ...on }, TOPIC, hash)));
  expect(found.map((places) => places.length)).toEqual([2, 1]);
});

test('processes that index at once, and one that was cut off, leave nothing out and read on where it stands', async () => {
  await publish(3000, others);
  const deps = { db: t.db, ...on };
  const cut = { ...deps, records: { subjectsOf: () => Promise.reject(new Error('the process died here')) } };
  await expect(indexTopic(cut, TOPIC)).rejects.toThrow('died');
  await Promise.all([indexTopic(deps, TOPIC), indexTopic(deps, TOPIC), indexTopic(deps, TOPIC)]);
  const [count] = await t.db.query('select count(distinct subject) as n from subject_places');
  expect(Number(count!['n'])).toBe(500);
  expect(await indexTopic(deps, TOPIC)).toBe(0);
  await publish(10, others);
  expect(await indexTopic(deps, TOPIC)).toBe(10);
});

test('of domain events it knows the streams', async () => {
  const [ada, bob] = ['user:ada', 'user:bob'];
  const hashes = await on.subject_keys.hashesOf([ada, bob]);
  for (const [stream, subjects] of [
    ['a', [ada]],
    ['b', [ada, bob]],
    ['c', []],
  ] as const) {
    const told = subjects.map((subject) => hashes.get(subject)).join(',');
    const event = { id: uuid(), type: 'x:happened', data: {} };
    await on.events.append([{ stream, expected: 'none', events: [event] }], told === '' ? {} : { subjects: told });
  }
  const deps = { db: t.db, stored_events: on.events };
  expect(await indexEvents(deps)).toBe(3);
  expect(await indexEvents(deps)).toBe(0);
  expect(await streamsOf(deps, hashes.get(ada)!)).toEqual(['a', 'b']);
  expect(await streamsOf(deps, hashes.get(bob)!)).toEqual(['b']);
});
