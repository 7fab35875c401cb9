import { UPCASTERS } from '../../bin/areas';
import { Type } from 'avsc';
import { v7 as uuid } from 'uuid';
import { deadLettersOf, ERASED_RAW, TOPICS } from '../../domain/common/records';
import type { Broker, BrokerRecord } from '../../engines/broker/port';
import { createPostgresLeases } from '../../engines/leases/postgres';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import type { Database } from '../../engines/postgres/port';
import type { RelayedDeadLetter, RelayedDomainEvent } from '../../engines/records/port';
import { createRelayCodec, RELAYED_SCHEMAS } from '../../engines/records/relayed';
import { deadLetterRelay } from '../../projections/runtime/relay/dead-letter-relay';
import { listDeadLetters } from '../../projections/runtime/dead-letter/dead-letters';
import { domainEventRelay } from '../../projections/runtime/relay/domain-event-relay';
import { DataError, type RecordProjection } from '../../kernel/projection';
import { dropDeadLetter, retryDeadLetter } from '../../projections/runtime/dead-letter/retry-letters';
import { createTopicRelays } from '../../projections/runtime/relay/topic-relay';
import { testDatabase, type TestDatabase } from '../support/database';
import { silentLog } from '../support/log';
import {
  ACCOUNTS,
  createTally,
  type Engines,
  eventTally,
  record,
  runtimeOf,
  tally,
  until,
} from '../support/projections';

/** What the relays for outside consumers hold on every broker; `open` gives each test empty topics. */
export function topicRelayContract(name: string, open: (t: TestDatabase) => Promise<Engines>): void {
  describe(`topic relays: ${name}`, () => {
    let t: TestDatabase;
    let on: Engines;
    const running: { stop(): Promise<void> }[] = [];
    const letters_topic = deadLettersOf(TOPICS.platform_events);

    beforeEach(async () => {
      t = await testDatabase();
      on = await open(t);
      await on.broker.ensureTopics([letters_topic, deadLettersOf(TOPICS.domain_events)], 1);
      await createTally(t.db);
      await createTally(t.db, 'event_tally');
    });
    afterEach(async () => {
      for (const one of running.splice(0)) await one.stop();
      await on.close();
      await t.drop();
    });

    /** What one projector process runs. */
    function relays(changes: { db?: Database; broker?: Broker } = {}) {
      const { db = t.db, broker = on.broker } = changes;
      const metrics = createPrometheusMetrics({ service: 'lumio', env: 'test' });
      const codec = createRelayCodec();
      const leases = createPostgresLeases({ db: t.db, log: silentLog, ttl_ms: 15_000 });
      const started = createTopicRelays({
        db,
        broker,
        leases,
        wakeups: on.wakeups,
        log: silentLog,
        metrics,
        sources: [
          domainEventRelay({ db, stored_events: on.events, upcasters: UPCASTERS, broker_id: broker.id, codec }),
          deadLetterRelay({ db, broker, upcasters: UPCASTERS, codec }),
        ],
        poll_ms: 50,
        observe_ms: 50,
      });
      let stopped: Promise<void> | undefined;
      const stop = () => (stopped ??= started.stop());
      running.push({ stop });
      const value = async (series: string, relay: string) =>
        Number(new RegExp(`^${series}{[^}]*relay="${relay}"[^}]*} (.+)$`, 'm').exec(await metrics.render())?.[1]);
      return { stop, value };
    }

    async function relayed(topic: string): Promise<BrokerRecord[]> {
      const found: BrokerRecord[] = [];
      for (const [partition] of await on.broker.bounds(topic))
        for await (const page of on.broker.read(topic, partition, 0)) found.push(...page);
      return found;
    }
    const decoded = <T>(records: readonly BrokerRecord[], schema: number) =>
      records.map(({ value }) => {
        expect(value.readUInt8(0)).toBe(0);
        expect(value.readInt32BE(1)).toBe(schema);
        return Type.forSchema(RELAYED_SCHEMAS.get(schema)!).fromBuffer(value.subarray(5)) as T;
      });
    const events = async () => decoded<RelayedDomainEvent>(await relayed(TOPICS.domain_events), 2);
    const letters = async (topic = letters_topic) => decoded<RelayedDeadLetter>(await relayed(topic), 3);
    const status = async () => (await letters()).map((letter) => letter.status);

    async function happen(stream: string, n: number | string): Promise<string> {
      const id = uuid();
      await on.events.append(
        [{ stream, expected: 'any', events: [{ id, type: 'thing:happened', data: { raw: n, text: 'Zoë "🎉"' } }] }],
        { actor_kind: 'user', account_id: ACCOUNTS[0]! },
      );
      return id;
    }

    /** Distinct ids by stream in the order of their first appearance. */
    const firstById = (all: readonly RelayedDomainEvent[]) => {
      const seen = new Map<string, Set<string>>();
      for (const { stream, id } of all) seen.set(stream, (seen.get(stream) ?? new Set()).add(id));
      return new Map([...seen].map(([stream, ids]) => [stream, [...ids]]));
    };

    test('every domain event is in its topic, whole, each stream in its order; a restart repeats none', async () => {
      const streams = ['a', 'b', 'c'];
      const sent = new Map<string, string[]>(streams.map((stream) => [stream, []]));
      const write = async (count: number) => {
        const writers = streams.map(async (stream) => {
          for (let n = 0; n < count; n += 1) sent.get(stream)!.push(await happen(stream, n));
        });
        await Promise.all(writers);
      };
      await write(20);
      const first = relays();
      await until(async () => (await events()).length === 60);
      await write(10);
      await until(async () => (await events()).length === 90);
      await first.stop();
      await write(5);
      relays();
      await until(async () => (await events()).length >= 105);
      const all = await events();
      expect(all).toHaveLength(105);
      expect(firstById(all)).toEqual(sent);
      for (const stream of streams) {
        const revisions = all.filter((event) => event.stream === stream).map(({ revision }) => revision);
        expect(revisions).toEqual(Array.from({ length: 35 }, (_, n) => n));
      }
      expect({ ...all[0]!, metadata: { ...all[0]!.metadata } }).toEqual({
        id: sent.get(all[0]!.stream)![0],
        stream: all[0]!.stream,
        revision: 0,
        type: 'thing:happened',
        version: 1,
        data: JSON.stringify({ raw: 0, text: 'Zoë "🎉"' }),
        metadata: { actor_kind: 'user', account_id: ACCOUNTS[0] },
        recorded_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      });
      for (const { key, value } of await relayed(TOPICS.domain_events))
        expect(value.includes(Buffer.from(key))).toBe(true);
    });

    test('taken by the log and not remembered: the same events come again, none is missing', async () => {
      const ids: string[] = [];
      for (let n = 0; n < 30; n += 1) ids.push(await happen('a', n));
      let cut = 0;
      // The commit is lost after the log has taken the records, as when the process is killed there.
      const db: Database = {
        query: (...given) => t.db.query(...given),
        hold: (...given) => t.db.hold(...given),
        transaction: (work) => {
          if ((cut += 1) <= 2) return Promise.reject(new Error('cut off'));
          return t.db.transaction(work);
        },
      };
      const { value } = relays({ db });
      await until(async () => (await value('lumio_topic_relay_lag_records', 'domain-events')) === 0 && cut > 2);
      const all = await events();
      expect(all.length).toBeGreaterThanOrEqual(90);
      expect(firstById(all)).toEqual(new Map([['a', ids]]));
      expect(await value('lumio_topic_relay_failures_total', 'domain-events')).toBe(2);
    });

    test('of two processes one relays; the other goes on where it stopped', async () => {
      const [one, two] = [relays(), relays()];
      const ids: string[] = [];
      const counts = async () => {
        const of = async ({ value }: typeof one) =>
          (await value('lumio_topic_relay_records_total', 'domain-events')) || 0;
        return [await of(one), await of(two)] as const;
      };
      for (let n = 0; n < 10; n += 1) ids.push(await happen('a', n));
      await until(async () => (await events()).length === 10);
      const [by_one, by_two] = await until(async () => {
        const [a, b] = await counts();
        return a + b === 10 && ([a, b] as const);
      });
      expect([by_one, by_two].sort((a, b) => a - b)).toEqual([0, 10]);
      await (by_one > 0 ? one : two).stop();
      for (let n = 0; n < 10; n += 1) ids.push(await happen('a', n));
      await until(async () => (await events()).length >= 20);
      expect(firstById(await events())).toEqual(new Map([['a', ids]]));
      expect(await events()).toHaveLength(20);
    });

    test('a broker that refuses is waited for, and the lag shows', async () => {
      let refusing = true;
      const broker: Broker = {
        id: on.broker.id,
        ensureTopics: (...given) => on.broker.ensureTopics(...given),
        publish: (...given) => (refusing ? Promise.reject(new Error('away')) : on.broker.publish(...given)),
        consume: (options) => on.broker.consume(options),
        read: (...given) => on.broker.read(...given),
        bounds: (topic) => on.broker.bounds(topic),
        trim: (...given) => on.broker.trim(...given),
        close: () => on.broker.close(),
      };
      const { value } = relays({ broker });
      const id = await happen('a', 1);
      await on.records.append(TOPICS.platform_events, [record(ACCOUNTS[0]!, 'poison:js')]);
      const runtime = runtimeOf(t.db, on, [tally()]);
      await runtime.start();
      running.unshift(runtime);
      for (const relay of ['domain-events', 'dead-letters']) {
        await until(async () => (await value('lumio_topic_relay_lag_records', relay)) === 1);
        await until(async () => (await value('lumio_topic_relay_lag_seconds', relay)) > 0.2);
        await until(async () => (await value('lumio_topic_relay_failures_total', relay)) > 0);
      }
      refusing = false;
      for (const relay of ['domain-events', 'dead-letters']) {
        await until(async () => (await value('lumio_topic_relay_lag_records', relay)) === 0);
        expect(await value('lumio_topic_relay_lag_seconds', relay)).toBe(0);
      }
      expect((await events()).map((event) => event.id)).toEqual([id]);
      expect(await status()).toEqual(['parked']);
    });

    test('each state of a dead letter is in the topic of its source, and the record as it was', async () => {
      const runtime = runtimeOf(t.db, on, [tally(), eventTally()]);
      await runtime.start();
      running.push(runtime);
      relays();
      const [first, second] = [record(ACCOUNTS[1]!, 'poison:js'), record(ACCOUNTS[1]!, 'poison:sql')];
      await on.records.append(TOPICS.platform_events, [first, second]);
      const poison_event = await happen('stream', 'poison:sql');
      await until(async () => (await letters()).length === 2);
      await until(async () => (await letters(deadLettersOf(TOPICS.domain_events))).length === 1);
      const [one, two] = await listDeadLetters(t.db, { projection: 'tally' });
      const deps = { db: t.db, records: on.records, readStored: on.readStored, projections: [tally()] };
      await retryDeadLetter(deps, one!.id);
      await until(async () => (await letters()).length === 3);
      await dropDeadLetter(deps, two!.id);
      await until(async () => (await letters()).length === 4);
      const all = await letters();
      expect(all.map(({ letter_id, id, status: now, attempts }) => [letter_id, id, now, attempts])).toEqual([
        [one!.id, `${one!.id}.1.parked`, 'parked', 1],
        [two!.id, `${two!.id}.1.parked`, 'parked', 1],
        [one!.id, `${one!.id}.2.parked`, 'parked', 2],
        [two!.id, `${two!.id}.1.dropped`, 'dropped', 1],
      ]);
      expect(all[0]).toMatchObject({
        projection: 'tally',
        reason: 'poison',
        error: 'DataError',
        topic: TOPICS.platform_events,
        type: 'kick:follower',
        account_id: ACCOUNTS[1],
        record_key: ACCOUNTS[1],
        event: null,
      });
      expect(all[3]!.settled_at).toMatch(/Z$/);
      const { records } = await on.records.decode([
        {
          topic: all[0]!.topic,
          partition: all[0]!.partition,
          offset: Number(all[0]!.position),
          key: all[0]!.record_key!,
          value: Buffer.from(all[0]!.record!),
          headers: {},
          appended_at: all[0]!.first_failed_at,
        },
      ]);
      expect(records[0]).toMatchObject({ id: first.id, raw: first.raw });
      expect((await relayed(letters_topic)).map(({ key }) => key)).toEqual([one, two, one, two].map((l) => `${l!.id}`));
      expect(await letters(deadLettersOf(TOPICS.domain_events))).toMatchObject([
        {
          projection: 'event_tally',
          topic: TOPICS.domain_events,
          record: null,
          event: { id: poison_event, stream: 'stream' },
        },
      ]);
    });

    test('what is personal is unreadable in the topic, and stays so when the person was erased', async () => {
      // A failure that quotes what it met.
      const quoting: RecordProjection = {
        ...tally(),
        apply: (batch) => Promise.reject(new DataError(`no such thing: ${batch.map(({ raw }) => raw).join()}`)),
      };
      const runtime = runtimeOf(t.db, on, [quoting]);
      await runtime.start();
      running.push(runtime);
      relays();
      const subject = 'kick:4711';
      await on.records.append(TOPICS.platform_events, [{ ...record(ACCOUNTS[2]!, 'Ada Lovelace'), subject }]);
      await until(async () => (await letters()).length === 1);
      const [stored] = await relayed(letters_topic);
      expect((await listDeadLetters(t.db))[0]!.error).toContain('Ada Lovelace');
      expect(stored!.value.includes('Ada')).toBe(false);
      const [letter] = await letters();
      const read = async () =>
        (
          await on.records.decode([
            { ...stored!, topic: letter!.topic, key: letter!.record_key!, value: Buffer.from(letter!.record!) },
          ])
        ).records[0]!.raw;
      expect(await read()).toBe('"Ada Lovelace"');
      await on.subject_keys.erase(subject);
      expect(await read()).toBe(ERASED_RAW);
    });

    test('a letter that would be larger than a record may be goes without its payload', async () => {
      const runtime = runtimeOf(t.db, on, [tally()]);
      await runtime.start();
      running.push(runtime);
      relays();
      const value = Buffer.alloc(2 * 1024 * 1024 - 10, 'x');
      await on.broker.publish(TOPICS.platform_events, [{ key: ACCOUNTS[3]!, value }]);
      await until(async () => (await letters()).length === 1);
      expect((await letters())[0]).toMatchObject({ reason: 'undecodable', record: null, record_key: ACCOUNTS[3] });
    });

    test('another log is filled from the beginning', async () => {
      const ids = [await happen('a', 1), await happen('a', 2)];
      const runtime = runtimeOf(t.db, on, [tally()]);
      await runtime.start();
      running.push(runtime);
      await on.records.append(TOPICS.platform_events, [record(ACCOUNTS[0]!, 'poison:js')]);
      const first = relays();
      await until(async () => (await events()).length === 2 && (await letters()).length === 1);
      await until(async () => (await first.value('lumio_topic_relay_lag_records', 'dead-letters')) === 0);
      await first.stop();
      relays({ broker: Object.assign(Object.create(on.broker) as Broker, { id: 'another' }) });
      await until(async () => (await events()).length === 4 && (await letters()).length === 2);
      expect((await events()).map(({ id }) => id)).toEqual([...ids, ...ids]);
      expect(new Set((await letters()).map(({ id }) => id)).size).toBe(1);
    });
  });
}
