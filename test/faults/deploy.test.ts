import { createUpcasters, type Upcasters } from '../../kernel/upcasters';
import type { StoredEvent } from '../../engines/event-store/port';
import { versionedEventStore } from '../../engines/event-store/decorators/versioned';
import { migrate } from '../../engines/postgres/migrate';
import { PostgresDatabase } from '../../engines/postgres/pool';
import type { Queryable } from '../../engines/postgres/port';
import { domainEvents, projection, type Projection } from '../../kernel/projection';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { retryDeadLetter } from '../../projections/runtime/dead-letter/retry-letters';
import { type Engines, engines, runtimeOf } from '../support/projections';
import { type Cluster, startCluster } from './support/cluster';
import { until } from './support/dose';

/** Version N wrote `body`; N+1 writes `text`, and reads what N wrote through its upcaster. */
const OLD = createUpcasters([]);
const NEW = createUpcasters([
  { type: 'note:written', to: 2, upcast: ({ body, ...rest }) => ({ ...rest, text: body ?? null }) },
]);

/**
 * Row 24: a new event version is deployed, rolled back and deployed again over one log. Row 10: an upcaster that fails.
 */
describe('event versions over deployments', () => {
  let cluster: Cluster;
  let db: PostgresDatabase;
  let on: Engines;

  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.dispose());
  beforeEach(async () => {
    const url = await cluster.createDatabase();
    await migrate(url);
    db = new PostgresDatabase({ url, name: 'deploy', size: 10 });
    on = await engines(db);
    await db.query(
      'create table notes (stream text not null, n int not null, said text not null, primary key (stream, n))',
    );
  });
  afterEach(async () => {
    await on.close();
    await db.close();
  });

  /** What a program of that version makes of notes. */
  const notes = (member: 'body' | 'text'): Projection =>
    projection({
      name: 'notes',
      version: 1,
      from: domainEvents(['note:written']) as { kind: 'domain_events'; types: string[] },
      tables: ['notes'],
      async apply(events: readonly StoredEvent[], tx: Queryable) {
        for (const { stream, revision, data } of events) {
          await tx.query('insert into notes values ($1, $2, $3)', [stream, revision, data[member]]);
        }
        return [];
      },
    });
  const program = (upcasters: Upcasters, member: 'body' | 'text') => {
    const events = versionedEventStore(on.events, upcasters);
    const mine = notes(member);
    return { events, mine, upcasters, runtime: runtimeOf(db, { ...on, events }, [mine]) };
  };
  const write = (at: ReturnType<typeof program>, stream: string, data: Record<string, string>) =>
    at.events.append(
      [{ stream, expected: 'any', events: [{ id: crypto.randomUUID(), type: 'note:written', data }] }],
      {},
    );
  const rows = async () =>
    (await db.query('select stream, n, said from notes order by 1, 2')).map(
      ({ stream, n, said }) => `${stream}/${n} ${said}`,
    );
  const letters = () =>
    db.query(`select id, stream, reason, error from dead_letters where status = 'parked' order by id`);

  test('row 24: N → N+1 → N → N+1: old events are read by the new program, new ones wait for it, nothing is skipped', async () => {
    const n = program(OLD, 'body');
    await n.runtime.start();
    await write(n, 'note-a', { body: 'one' });
    await until(async () => (await rows()).length === 1, 'the first note');
    await n.runtime.stop();

    const next = program(NEW, 'text');
    await next.runtime.start();
    await write(next, 'note-a', { text: 'two' });
    await until(async () => (await rows()).length === 2, 'the second note');
    expect((await next.events.read('note-a')).map(({ data }) => data)).toEqual([{ text: 'one' }, { text: 'two' }]);
    await write(next, 'note-b', { text: 'of a new stream' });
    await until(async () => (await rows()).length === 3, 'the third note');
    await next.runtime.stop();

    // Rolled back, while a node of N+1 still writes.
    const back = program(OLD, 'body');
    await back.runtime.start();
    await write(next, 'note-a', { text: 'three' });
    await write(back, 'note-c', { body: 'by the old program' });
    await write(back, 'note-a', { body: 'four, behind what it cannot read' });
    await until(async () => back.runtime.lag()[0]!.state === 'needs_newer_build', 'the old program to stop');
    expect(await rows()).toHaveLength(3);
    expect(await letters()).toEqual([]);
    await expect(back.events.read('note-a')).rejects.toThrow('stored as version 2');

    // Forward again, beside the old one: it goes on where that one stopped, in order, and a rebuild makes the same
    // rows.
    const forward = program(NEW, 'text');
    await forward.runtime.start();
    await until(async () => (await rows()).length === 6, 'what the old program left');
    await back.runtime.stop();
    const live = await rows();
    expect(live).toEqual([
      'note-a/0 one',
      'note-a/1 two',
      'note-a/2 three',
      'note-a/3 four, behind what it cannot read',
      'note-b/0 of a new stream',
      'note-c/0 by the old program',
    ]);
    await rebuild({ db, ...on, events: forward.events, projections: [forward.mine], name: 'notes' });
    expect(await rows()).toEqual(live);
    await forward.runtime.stop();
  });

  test('row 10: a bad upcaster parks its events with the reason, other streams go on, and a mended one lets them in', async () => {
    const bad = createUpcasters([
      {
        type: 'note:written',
        to: 2,
        upcast: ({ body }) => {
          if (body === 'odd') throw new Error('odd notes were forgotten');
          return { text: body! };
        },
      },
    ]);
    const old = program(OLD, 'body');
    await write(old, 'note-a', { body: 'odd' });
    await write(old, 'note-a', { body: 'after it' });
    await write(old, 'note-b', { body: 'plain' });
    const broken = program(bad, 'text');
    await broken.runtime.start();
    await until(async () => (await rows()).length === 1 && (await letters()).length === 2, 'parked and applied');
    await broken.runtime.stop();
    expect((await letters())[0]!.error).toContain('its upcaster failed: odd notes were forgotten');
    const mended = program(NEW, 'text');
    const deps = {
      db,
      records: on.records,
      projections: [mended.mine],
      readStored: async (some: readonly StoredEvent[]) => some.map(NEW.read),
    };
    const [first] = await letters();
    expect(await retryDeadLetter(deps, first!.id as number)).toMatchObject({ retried: 2, waiting: 0 });
    expect(await rows()).toEqual(['note-a/0 odd', 'note-a/1 after it', 'note-b/0 plain']);
  });
});
