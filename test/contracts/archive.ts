import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOPICS, type RecordEnvelope } from '../../domain/common/records';
import type { Blobs } from '../../engines/blobs/port';
import type { BrokerRecord } from '../../engines/broker/port';
import { LockLost, LOCKS } from '../../engines/locks/port';
import { BACKUP_RUNS, createArchiver, TRIM_OFF, type ArchiverDeps } from '../../maintenance/archive/archive';
import { adoptSegments } from '../../maintenance/archive/adoption';
import { decodeSegment } from '../../maintenance/archive/format';
import { ArchiveDamaged, createArchiveReader } from '../../maintenance/archive/reader';
import { eventLog } from '../../projections/events/events';
import { HistoryGone, rebuild } from '../../projections/runtime/rebuild/rebuild';
import { readStored } from '../../projections/runtime/rebuild/source';
import { replayTopic, type ReplayedRecord } from '../../maintenance/archive/replay';
import type { TestDatabase } from '../support/database';
import { blobsOfEach, enginesOfEach } from '../support/each';
import { silentLog } from '../support/log';
import {
  ACCOUNTS,
  createTally,
  type Engines,
  noMetrics,
  record,
  runtimeOf,
  tally,
  until,
} from '../support/projections';

const TOPIC = TOPICS.platform_events;

/** What archive and trim keep on every broker; `open` gives one whose topics are empty. */
export function archiveContract(name: string, open: (t: TestDatabase) => Promise<Engines>): void {
  describe(`archive: ${name}`, () => {
    let t: TestDatabase;
    let on: Engines;
    let blobs: Blobs;
    let folder: string;
    enginesOfEach((database, engines) => ([t, on] = [database, engines]), { connections: 20, open });
    blobsOfEach((of, at) => ([blobs, folder] = [of, at]));

    const archiver = (options: Partial<ArchiverDeps> = {}) =>
      createArchiver({
        db: t.db,
        broker: on.broker,
        blobs,
        projections: [eventLog],
        topics: [TOPIC],
        log: silentLog,
        metrics: noMetrics,
        after_ms: 0,
        linger_ms: 0,
        trim: true,
        segment_records: 50,
        ...options,
      });

    async function publish(count: number, more: (n: number) => Partial<RecordEnvelope> = () => ({})): Promise<void> {
      const records = Array.from({ length: count }, (_, n) => ({ ...record(ACCOUNTS[n % 8]!, n), ...more(n) }));
      await on.records.append(TOPIC, records);
    }

    /** Everything in the event log and its counters, as one hash. */
    const hash = async () => {
      const [row] = await t.db.query(`
        select md5(string_agg(e::text, E'\\n' order by e.id)) as log, count(*) as rows,
          (select md5(string_agg(c::text, E'\\n' order by c::text)) from event_log_counters c) as counters
        from (select id, account_id, type, platform, external_id, user_id, raw::text, created_at from platform_event_logs) e`);
      return row!;
    };

    const applied = (count: number) =>
      until(async () => (await t.db.query('select count(*)::int as n from platform_event_logs'))[0]!.n === count);

    const bounds = async () => [...(await on.broker.bounds(TOPIC)).values()];

    async function all(
      readArchived = createArchiveReader({ db: t.db, blobs, broker: on.broker }),
    ): Promise<BrokerRecord[]> {
      const records: BrokerRecord[] = [];
      for (const [partition, { next }] of await on.broker.bounds(TOPIC)) {
        for await (const some of readStored({ broker: on.broker, readArchived }, TOPIC, partition, 0, next))
          records.push(...some);
      }
      return records;
    }

    test('archived and trimmed, records read as before across the seam, and a rebuild makes the same rows', async () => {
      const runtime = runtimeOf(t.db, on, [eventLog]);
      await runtime.start();
      await publish(500, (n) => ({ external_id: `kick:${n % 400}`, subject: n % 3 === 0 ? `kick:${n % 30}` : null }));
      await applied(400);
      const before = await all();
      expect(before).toHaveLength(500);
      expect(await archiver().run()).toMatchObject({ records: 500 });
      expect((await bounds()).every(({ earliest, next }) => earliest === next)).toBe(true);
      expect(await archiver().run()).toEqual({ records: 0, segments: 0, young: 0, waiting: 0, kept: new Map() });
      await publish(100);
      await applied(500);
      const after = await all();
      expect(
        after
          .slice()
          .filter(({ offset, partition }) => before.some((r) => r.offset === offset && r.partition === partition)),
      ).toEqual(before);
      expect(after).toHaveLength(600);
      const live = await hash();
      const replayed: ReplayedRecord[] = [];
      const readArchived = createArchiveReader({ db: t.db, blobs, broker: on.broker });
      for await (const some of replayTopic({ db: t.db, ...on, readArchived }, { topic: TOPIC })) replayed.push(...some);
      expect(replayed).toHaveLength(500); // a hundred of them came twice
      await rebuild({
        db: t.db,
        ...on,
        projections: [eventLog],
        name: 'event-log',
        batch_records: 70,
        readArchived,
      });
      expect(await hash()).toEqual(live);
      await runtime.stop();
    });

    test('the topic of domain events waits for no projection of them: those read the event store, and are at places of it', async () => {
      await t.db.query(
        `insert into checkpoints (projection, source, partition, engine, version, position)
         values ('users', 'domain-events', 0, $1, 1, '')`,
        [on.events.id],
      );
      const topic = TOPICS.domain_events;
      await on.broker.publish(
        topic,
        Array.from({ length: 40 }, (_, n) => ({ key: `stream-${n}`, value: Buffer.from(`${n}`) })),
      );
      await archiver({ topics: [topic] }).run();
      const left = [...(await on.broker.bounds(topic)).values()].map(({ earliest, next }) => next - earliest);
      expect(left).toEqual([0, 0, 0, 0]);
    });

    test('records are trimmed and archived while a rebuild reads them', async () => {
      const runtime = runtimeOf(t.db, on, [eventLog]);
      await runtime.start();
      await publish(600);
      await applied(600);
      const live = await hash();
      let archiving: Promise<unknown> | undefined;
      await rebuild({
        db: t.db,
        ...on,
        projections: [eventLog],
        name: 'event-log',
        batch_records: 20,
        readArchived: createArchiveReader({ db: t.db, blobs, broker: on.broker }),
        onProgress: () => (archiving ??= archiver().run()),
      });
      await archiving;
      expect(await hash()).toEqual(live);
      await runtime.stop();
    });

    test('a projection with no checkpoint is built from the archive by itself, then driven on', async () => {
      await createTally(t.db);
      await publish(100);
      await archiver({ projections: [] }).run();
      const readArchived = createArchiveReader({ db: t.db, blobs, broker: on.broker });
      const runtime = runtimeOf(t.db, on, [tally()], { readArchived });
      await runtime.start();
      const total = async () => (await t.db.query('select sum(n)::int as n from tally'))[0]!.n as number;
      await until(async () => (await total()) === 100);
      await publish(10);
      await until(async () => (await total()) === 110);
      await runtime.stop();
      // What the archive held is no news.
      expect((await t.db.query('select count(*)::int as n from outbox'))[0]!.n).toBe(10);
    });

    test('a checkpoint before the beginning of the topic, as a restore may leave it: read models go on through the archive, each record once', async () => {
      const ids = (n: number) => ({ external_id: `kick:${n}` });
      let runtime = runtimeOf(t.db, on, [eventLog]);
      await runtime.start();
      await publish(60, ids);
      await applied(60);
      await runtime.stop();
      // What came after the backup was archived, and trimmed by an archiver whose checkpoints were further.
      await publish(300, ids);
      await archiver().run();
      for (const [partition, { next }] of await on.broker.bounds(TOPIC)) await on.broker.trim(TOPIC, partition, next);
      await t.db.query('truncate outbox');

      const readArchived = createArchiveReader({ db: t.db, blobs, broker: on.broker });
      // The read model is rebuilt up to its checkpoint, no further: what lies beyond is not in the ledger yet.
      await rebuild({ db: t.db, ...on, projections: [eventLog], name: 'event-log', readArchived });
      expect((await t.db.query('select count(*)::int as n from platform_event_logs'))[0]!.n).toBe(60);
      runtime = runtimeOf(t.db, on, [eventLog], { readArchived, batch_records: 40 });
      // Another process drives the same: one of them moves each checkpoint.
      const other = runtimeOf(t.db, on, [eventLog], { readArchived, batch_records: 40 });
      await Promise.all([runtime.start(), other.start()]);
      await publish(10, (n) => ids(300 + n));
      await applied(310);
      await Promise.all([runtime.stop(), other.stop()]);
      const live = await hash();
      expect((await t.db.query('select count(*)::int as n from outbox'))[0]!.n).toBe(250);
      await rebuild({ db: t.db, ...on, projections: [eventLog], name: 'event-log', readArchived });
      expect(await hash()).toEqual(live);
    });

    test('a checkpoint before the beginning of a topic of which no archive holds the rest waits for a person', async () => {
      const runtime = runtimeOf(t.db, on, [eventLog], {
        readArchived: createArchiveReader({ db: t.db, blobs, broker: on.broker }),
      });
      await runtime.start();
      await publish(100);
      await applied(100);
      await archiver().run();
      await runtime.stop();
      await t.db.query(`update checkpoints set position = '0'`);
      await t.db.query('delete from archive_segments');
      const again = runtimeOf(t.db, on, [eventLog], {
        readArchived: createArchiveReader({ db: t.db, blobs, broker: on.broker }),
      });
      await again.start();
      await until(() => again.lag()[0]!.state === 'needs_rebuild');
      await again.stop();
    });

    test('segments that the database does not list are listed again by their manifests, the longest of those that begin alike', async () => {
      const listed = () =>
        t.db.query('select partition, from_offset, to_offset, blob_key from archive_segments order by 1, 2');
      await publish(200);
      await archiver({ segment_records: 10, trim: false }).run();
      // Archivers that were killed before they listed what they had put: the next one makes longer segments from the
      // same places.
      await t.db.query('delete from archive_segments where from_offset > 0');
      await archiver({ trim: false }).run();
      const before = await listed();
      await t.db.query('delete from archive_segments where partition > 0');
      expect(await adoptSegments(t.db, blobs, on.broker.id)).toBeGreaterThan(0);
      expect(await adoptSegments(t.db, blobs, on.broker.id)).toBe(0);
      expect(await adoptSegments(t.db, blobs, 'another')).toBe(0);
      expect(await listed()).toEqual(expect.arrayContaining(before));
      for (const [partition, { next }] of await on.broker.bounds(TOPIC)) await on.broker.trim(TOPIC, partition, next);
      expect(await all()).toHaveLength(200);
    });

    test('who loses the archiver’s lock between two lines lists no segment after it, not even of the same partition', async () => {
      await publish(200);
      const holders = `select pid from pg_locks where locktype = 'advisory' and objid = ${LOCKS.archiver}
        and database = (select oid from pg_database where datname = current_database())`;
      let manifests = 0;
      let cut = 0;
      const put: Blobs['put'] = async (key, ...rest) => {
        const stored = await blobs.put(key, ...rest);
        if (key.endsWith('.json') && ++manifests === 2) {
          cut = (await t.db.query(`select pg_terminate_backend(pid, 10000) from (${holders}) of_lock`)).length;
        }
        return stored;
      };
      const cutting = Object.assign(Object.create(blobs) as Blobs, { put });
      const lost = archiver({ blobs: cutting, segment_records: 5, trim: false }).run();
      await expect(lost).rejects.toThrow(LockLost);
      const listed = () => t.db.query('select partition, from_offset from archive_segments');
      expect([cut, manifests, (await listed()).length]).toEqual([1, 2, 1]);
      expect((await archiver({ trim: false }).run()).records).toBe(195);
    });

    test('only what is old enough goes, and only full segments unless they wait too long', async () => {
      await publish(300);
      const nothing = { segments: 0, records: 0, waiting: 0, kept: new Map() };
      expect(await archiver({ after_ms: 3_600_000 }).run()).toEqual({ ...nothing, young: 300 });
      const { records, segments, young, waiting } = await archiver({ linger_ms: 3_600_000 }).run();
      expect([young, waiting]).toEqual([0, 300 - records]);
      expect(records).toBe(segments * 50);
      expect(records).toBeLessThan(300);
      expect((await archiver().run()).records).toBe(300 - records);
    });

    test('nothing leaves the topic before every projection has it, nor without being asked to', async () => {
      await publish(100);
      expect((await archiver({ trim: false }).run()).kept).toEqual(new Map([[TRIM_OFF, 100]]));
      expect((await bounds()).every(({ earliest }) => earliest === 0)).toBe(true);
      // No checkpoint yet: event-log has applied nothing.
      expect((await archiver().run()).kept).toEqual(new Map([['event-log', 100]]));
      expect((await bounds()).every(({ earliest }) => earliest === 0)).toBe(true);
      const runtime = runtimeOf(t.db, on, [eventLog]);
      await runtime.start();
      await applied(100);
      await runtime.stop();
      await t.db.query(
        `insert into checkpoints (projection, source, partition, engine, version, position)
         select 'slow', $1, partition, $2, 1, '3' from generate_series(0, 3) partition`,
        [TOPIC, on.broker.id],
      );
      const backup = await t.db.pool.connect();
      await backup.query('begin');
      await backup.query('select pg_advisory_xact_lock_shared($1)', [LOCKS.backup]);
      expect((await archiver().run()).kept).toEqual(new Map([[BACKUP_RUNS, 100]]));
      await backup.query('commit');
      backup.release();
      const { kept } = await archiver().run();
      for (const { earliest, next } of await bounds()) expect(earliest).toBe(Math.min(3, next));
      const stayed = (await bounds()).reduce((sum, { earliest, next }) => sum + next - earliest, 0);
      expect(kept).toEqual(new Map([['slow', stayed]]));
    });

    test('a segment and its manifest are read without the database; personal parts stay encrypted', async () => {
      await publish(60, () => ({ subject: 'kick:1', raw: JSON.stringify({ user: 'canary-of-a-person' }) }));
      await archiver().run();
      const keys: string[] = [];
      for await (const { key } of blobs.list('archive/')) keys.push(key);
      let read = 0;
      for (const key of keys.filter((name) => name.endsWith('.json'))) {
        const chunks: Buffer[] = [];
        for await (const chunk of (await blobs.get(key))!) chunks.push(chunk as Buffer);
        const manifest = JSON.parse(Buffer.concat(chunks).toString()) as {
          blob_key: string;
          records: number;
          sha256: string;
        };
        expect((await blobs.head(manifest.blob_key))!.sha256).toBe(manifest.sha256);
        let records = 0;
        for await (const some of decodeSegment((await blobs.get(manifest.blob_key))!, TOPIC, 0)) {
          records += some.length;
          for (const { value } of some) expect(value.includes('canary')).toBe(false);
        }
        expect(records).toBe(manifest.records);
        read += records;
      }
      expect(read).toBe(60);
    });

    test('a damaged, missing or foreign segment stops the reader; without an archive trimmed history is refused', async () => {
      const runtime = runtimeOf(t.db, on, [eventLog]);
      await runtime.start();
      await publish(100);
      await applied(100);
      await runtime.stop();
      await archiver().run();
      const failing = rebuild({ db: t.db, ...on, projections: [eventLog], name: 'event-log' });
      await expect(failing).rejects.toThrow(HistoryGone);
      const [segment] = await t.db.query('select * from archive_segments limit 1');
      const path = join(folder, `${segment!.blob_key as string}~blob`);
      const bytes = readFileSync(path);
      const damaged = Buffer.from(bytes);
      damaged[200]! ^= 1;
      writeFileSync(path, damaged);
      await expect(all()).rejects.toThrow(ArchiveDamaged);
      rmSync(path);
      await expect(all()).rejects.toThrow(/its blob is gone/);
      await blobs.put(segment!.blob_key as string, Buffer.from('other'));
      await expect(all()).rejects.toThrow(/another one/);
      writeFileSync(path, bytes);
      expect(await all()).toHaveLength(100);
      await t.db.query('delete from archive_segments where blob_key = $1', [segment!.blob_key]);
      await expect(all()).rejects.toThrow(HistoryGone);
    });

    test('an upload that fails leaves neither row nor hole', async () => {
      await publish(120);
      let puts = 0;
      const failing: Blobs = {
        ...blobs,
        get: (key) => blobs.get(key),
        head: (key) => blobs.head(key),
        async put(key, content, type) {
          puts += 1;
          if (puts === 4) throw new Error('the store is away');
          return blobs.put(key, content, type);
        },
      };
      await expect(archiver({ blobs: failing }).run()).rejects.toThrow('the store is away');
      expect((await t.db.query('select count(*)::int as n from archive_segments'))[0]!.n).toBe(1);
      await archiver().run();
      expect(await all()).toHaveLength(120);
    });
  });
}
