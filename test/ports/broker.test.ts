import pg from 'pg';
import { partitionOf } from '../../engines/broker/partitioner';
import { murmur2 } from '../../lib/hash/murmur2';
import type { Broker, BrokerRecord } from '../../engines/broker/port';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import { brokerContract, until } from '../contracts/broker';
import { testDatabase, type TestDatabase } from '../support/database';
import { timeLimit } from '../support/patience';

/** An adapter as a process of its own would have it: own pool, own wake-up link. */
function open(url: string): Broker {
  const db = new PostgresDatabase({ url, name: 'broker', size: 4, onError: () => undefined });
  const wakeups = createPostgresWakeups({ url });
  const broker = createPostgresBroker({ pool: db.pool, wakeups });
  const close = async () => {
    await Object.getPrototypeOf(broker).close.call(broker);
    await wakeups.close();
    await db.close();
  };
  return Object.assign(broker, { close });
}

brokerContract('postgres', async () => {
  const target = await testDatabase();
  return { open: async () => open(target.url), stop: () => target.drop() };
});

describe('broker on PostgreSQL', () => {
  let target: TestDatabase;
  beforeAll(async () => {
    target = await testDatabase();
  });
  afterAll(() => target.drop());

  test('builds before read the same bytes, in base64', async () => {
    const broker = open(target.url);
    await broker.ensureTopics(['before'], 1);
    await broker.publish('before', [
      { key: 'a', value: Buffer.from([0, 255]) },
      { key: 'b', value: Buffer.alloc(300_000, 7), headers: { some: 'header' } },
    ]);
    const places = `(select topic_id from broker_topics where topic = 'before'), '{0}', '{0}', '{2}', 10, 1000000`;
    const [row] = await target.db.query(
      `select r.next_offset, f.packed = encode(r.packed, 'base64') as same, length(f.packed) as length
       from broker_read(${places}) r join broker_fetch(${places}) f using (partition, earliest, next_offset)`,
    );
    expect(row).toMatchObject({ next_offset: 2, same: true });
    expect(row!.length).toBeGreaterThan(400_000);
    await broker.close();
  });

  test('keys land where Kafka puts them', () => {
    // Vectors of Kafka's own tests.
    expect(murmur2(Buffer.from('21'))).toBe(-973932308);
    expect(murmur2(Buffer.from('foobar'))).toBe(-790332482);
    expect(murmur2(Buffer.from('a-little-bit-long-string'))).toBe(-985981536);
    expect(murmur2(Buffer.from('a-little-bit-longer-string'))).toBe(-1486304829);
    expect(murmur2(Buffer.from('abc'))).toBe(479470107);
    expect(partitionOf('foobar', 8)).toBe((-790332482 & 0x7fffffff) % 8);
  });

  test('what this process wrote is handed over in memory, as the log holds it, between what others wrote', async () => {
    const [own, other] = [open(target.url), open(target.url)];
    await own.ensureTopics(['handed'], 2);
    const seen: BrokerRecord[] = [];
    const tail = own.consume({
      topic: 'handed',
      group: 'handed',
      max_records: 40,
      start: async () => new Map(),
      onBatch: async ({ records }) => void seen.push(...records),
    });
    const flood = async (broker: Broker, name: string) => {
      for (let n = 0; n < 400; n += 1) {
        const headers = n % 3 === 0 ? { n: String(n) } : undefined;
        const value = Buffer.from(`${name} ${n}`);
        await broker.publish('handed', [{ key: `k${n % 5}`, value, headers, opened: { name, n } }]);
      }
    };
    await flood(own, 'own');
    await Promise.all([flood(own, 'own again'), flood(other, 'other')]);
    await until(() => seen.length >= 1200);
    await tail.stop();
    const logged: BrokerRecord[] = [];
    for (const partition of [0, 1]) for await (const page of other.read('handed', partition, 0)) logged.push(...page);
    const place = ({ partition, offset }: BrokerRecord) => partition * 1e6 + offset;
    const handed = seen.filter(({ opened }) => opened !== undefined);
    expect(handed.length).toBeGreaterThan(100);
    for (const { value, opened } of handed) {
      const { name, n } = opened as { name: string; n: number };
      expect(value.toString()).toBe(`${name} ${n}`);
    }
    for (const partition of [0, 1]) {
      const offsets = seen.filter((record) => record.partition === partition).map(({ offset }) => offset);
      expect(offsets).toEqual(offsets.map((_, n) => n));
    }
    const without = seen.map(({ opened: _opened, ...record }) => record);
    expect(without.sort((a, b) => place(a) - place(b))).toEqual(logged);
    await Promise.all([own.close(), other.close()]);
  });

  test('a record of this process does not wait for company', async () => {
    const broker = open(target.url);
    await broker.ensureTopics(['alone'], 4);
    let came: (at: number) => void = () => undefined;
    const tail = broker.consume({
      topic: 'alone',
      group: 'alone',
      start: async () => new Map(),
      onBatch: async () => came(performance.now()),
    });
    const waits: number[] = [];
    for (let n = 0; n < 21; n += 1) {
      const arrival = new Promise<number>((resolve) => (came = resolve));
      await broker.publish('alone', [{ key: `k${n}`, value: Buffer.from('x') }]);
      const published = performance.now();
      waits.push((await arrival) - published);
    }
    // Nothing but memory lies between: half of the pace of a stream would show.
    expect(waits.sort((a, b) => a - b)[10]).toBeLessThan(timeLimit(7));
    await tail.stop();
    await broker.close();
  });

  test('a reader never passes an open publish of its partition', async () => {
    const broker = open(target.url);
    await broker.ensureTopics(['staged'], 1);
    const [{ topic_id }] = (await target.db.query("select topic_id from broker_topics where topic = 'staged'")) as [
      { topic_id: number },
    ];
    const publish = `select broker_append(${topic_id}, 'ab', '{0}', '{0}', '{1}', '{1}', '{0}', '{1}', '{0}', '{1}')`;
    const slow = new pg.Client(target.url);
    await slow.connect();
    await slow.query('begin');
    await slow.query(publish);
    const fast = broker.publish('staged', [{ key: 'b', value: Buffer.from('late') }]);
    const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await until(async () => (await target.db.query(waits)).length === 1);
    expect(await broker.bounds('staged')).toEqual(new Map([[0, { earliest: 0, next: 0 }]]));
    const read = async () => {
      const texts: string[] = [];
      for await (const page of broker.read('staged', 0, 0)) texts.push(...page.map(({ value }) => value.toString()));
      return texts;
    };
    expect(await read()).toEqual([]);
    await slow.query('rollback');
    await slow.end();
    await fast;
    expect(await read()).toEqual(['late']);
    // The place of the one that was undone is not lost: offsets stay dense.
    expect(await broker.bounds('staged')).toEqual(new Map([[0, { earliest: 0, next: 1 }]]));
    await broker.close();
  });

  test('connections cut in a flood: nothing acknowledged is lost, and the tail goes on', async () => {
    const broker = open(target.url);
    await broker.ensureTopics(['flood'], 4);
    const seen = new Set<string>();
    const tail = broker.consume({
      topic: 'flood',
      group: 'flood',
      start: async () => new Map(),
      onBatch: async ({ records }) => records.forEach(({ value }) => seen.add(value.toString())),
    });
    const acked: string[] = [];
    let flooding = true;
    const publishers = Array.from({ length: 8 }, async (_, publisher) => {
      for (let n = 0; flooding; n += 1) {
        await broker.publish('flood', [{ key: `k${publisher}`, value: Buffer.from(`${publisher}:${n}`) }]);
        acked.push(`${publisher}:${n}`);
      }
    });
    for (let cut = 1; cut <= 5; cut += 1) {
      const before = acked.length;
      await until(() => acked.length > before + 50);
      await target.db.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = current_user and pid <> pg_backend_pid()',
      );
    }
    flooding = false;
    await Promise.all(publishers);
    await until(() => acked.every((value) => seen.has(value)));
    await tail.stop();
    await broker.close();
  });

  test('however long the database is away, one heartbeat waits for it', async () => {
    const wakeups = createLocalWakeups();
    const db = new PostgresDatabase({ url: target.url, name: 'broker', size: 4, onError: () => undefined });
    let beats = 0;
    const query = db.pool.query.bind(db.pool) as (...given: unknown[]) => unknown;
    Object.assign(db.pool, {
      query: (...given: unknown[]) => {
        if (JSON.stringify(given[0]).includes('broker_balance')) beats += 1;
        return query(...given);
      },
    });
    const broker = createPostgresBroker({ pool: db.pool, wakeups });
    await broker.ensureTopics(['away'], 1);
    const consumer = broker.consume({
      topic: 'away',
      group: 'g',
      start: async () => new Map(),
      onBatch: async () => undefined,
    });
    const [{ topic_id }] = (await target.db.query("select topic_id from broker_topics where topic = 'away'")) as [
      { topic_id: number },
    ];
    const there = () => target.db.query('select from broker_members where topic_id = $1', [topic_id]);
    await until(async () => (await there()).length === 1);
    const away = await target.db.pool.connect();
    await away.query('begin; lock table broker_members in access exclusive mode');
    const blocked = async () =>
      (await target.db.query("select from pg_locks where not granted and relation = 'broker_members'::regclass"))
        .length;
    wakeups.notify('broker-group:away:g');
    await until(async () => (await blocked()) > 0);
    for (let i = 0; i < 50; i += 1) {
      wakeups.notify('broker-group:away:g');
      await new Promise((resume) => setImmediate(resume));
    }
    const before = beats;
    await away.query('rollback');
    away.release();
    await until(async () => (await blocked()) === 0);
    await consumer.stop();
    // The one that waited, and the timer's where it fell into this; 50 would have queued.
    expect(beats - before).toBeGreaterThan(0);
    expect(beats - before).toBeLessThan(5);
    await broker.close();
    await wakeups.close();
    await db.close();
  });

  test('a member that died without a word is replaced as soon as its connection is gone', async () => {
    const broker = open(target.url);
    await broker.ensureTopics(['orphan'], 2);
    const [{ topic_id }] = (await target.db.query("select topic_id from broker_topics where topic = 'orphan'")) as [
      { topic_id: number },
    ];
    const process = new pg.Client(target.url);
    process.on('error', () => undefined);
    await process.connect();
    await process.query('select pg_advisory_lock(424242)');
    const dead = '00000000-0000-4000-8000-000000000000';
    await target.db.query('select broker_balance($1, $2, $3, $4, $5, $6)', [topic_id, 'g', dead, 424242, '{}', '10 s']);
    await broker.publish(
      'orphan',
      Array.from({ length: 20 }, (_, n) => ({ key: `k${n}`, value: Buffer.from('x') })),
    );
    let seen = 0;
    const consumer = broker.consume({
      topic: 'orphan',
      group: 'g',
      start: async () => new Map(),
      onBatch: async ({ records }) => void (seen += records.length),
    });
    await until(async () => (await target.db.query("select from broker_members where group_name = 'g'")).length === 2);
    expect(seen).toBe(0);
    await process.end();
    await until(() => seen === 20);
    await consumer.stop();
    await broker.close();
  });
});
