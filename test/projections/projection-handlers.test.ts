import fc from 'fast-check';
import { v7 as uuid } from 'uuid';
import { z } from 'zod';
import { PROJECTIONS } from '../../bin/areas';
import type { StoredEvent } from '../../engines/event-store/port';
import { event, events } from '../../kernel/event';
import { sql } from '../../kernel/sql';
import { all, type DeclaredProjection, eventProjection, lastPer } from '../../projections/runtime/drive/handlers';
import type { EventProjection, Projection } from '../../kernel/projection';
import { inPieces, rowsOf, undone } from '../support/applied';
import { arbitraryData } from '../support/arbitrary-event';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase(2);
});
afterAll(() => t.drop());

const isDeclared = (p: Projection): p is DeclaredProjection => 'declared' in p;

function stored(type: string, data: Record<string, unknown>, position: number): StoredEvent {
  // Streams are few, too: a statement may take one event of a stream at a time.
  const stream = `s-${JSON.stringify(Object.values(data)[0])}`;
  const recorded_at = '2026-01-01T00:00:00.000Z';
  const place = { stream, revision: position, position: String(position), recorded_at };
  return { id: uuid(), type, data: data as StoredEvent['data'], metadata: {}, ...place };
}

const arbitraryEvents = ({ declared }: DeclaredProjection) =>
  fc
    .array(fc.oneof(...[...declared].map(([type, one]) => arbitraryData(one).map((data) => ({ type, data })))), {
      minLength: 1,
      maxLength: 25,
    })
    .map((list) => list.map(({ type, data }, index) => stored(type, data, index)));

/** Applies one event after the other and leaves out those that the tables refuse. */
async function oneByOne(p: EventProjection, batch: readonly StoredEvent[]) {
  return undone(t.db, async (tx) => {
    const taken: StoredEvent[] = [];
    for (const one of batch) {
      await tx.query('savepoint one');
      try {
        await p.apply([one], tx, { rebuilding: false });
        taken.push(one);
      } catch {
        await tx.query('rollback to savepoint one');
      }
    }
    return { taken, tables: await rowsOf(tx, p.tables) };
  });
}

const inBatches = (p: EventProjection, batch: readonly StoredEvent[], size: number) =>
  undone(t.db, async (tx) => {
    for (const part of inPieces(batch, size)) await p.apply(part, tx, { rebuilding: true });
    return rowsOf(tx, p.tables);
  });

async function assertSame(p: DeclaredProjection): Promise<number> {
  let applied = 0;
  const property = fc.asyncProperty(arbitraryEvents(p), fc.integer({ min: 2, max: 25 }), async (batch, size) => {
    const { taken, tables } = await oneByOne(p, batch);
    applied += taken.length;
    expect(await inBatches(p, taken, size)).toEqual(tables);
  });
  await fc.assert(property, { numRuns: 40 });
  return applied;
}

const declared = PROJECTIONS.filter(isDeclared);

test('every projection of domain events is declared by handlers', () => {
  const others = PROJECTIONS.filter((p) => p.from.kind === 'domain_events' && !isDeclared(p));
  // Tests of their own apply the batches of these: two read events of every type, and one starts jobs.
  expect(others.map(({ name }) => name)).toEqual(['automation-requests', 'account-events', 'audit-log']);
  expect(declared.length).toBeGreaterThan(4);
});

test.each(declared.map((p) => [p.name, p] as const))(
  '%s: in batches of any size the rows are those of one event after the other',
  async (_name, p) => {
    expect(await assertSame(p)).toBeGreaterThan(100);
  },
);

describe('a handler that takes too much at once', () => {
  const THINGS = events({
    'thing:named': event({ thing_id: z.uuid(), name: z.string() }),
    'thing:gone': event({ thing_id: z.uuid() }),
  });
  const upsert = sql`insert into things (id, name) select thing_id, name from e
                     on conflict (id) do update set name = excluded.name`;
  const gone = all(sql`delete from things t using e where t.id = e.thing_id`);
  const things = (named: ReturnType<typeof lastPer>) =>
    eventProjection({
      name: 'things',
      version: 1,
      tables: ['things'],
      events: [THINGS],
      on: { 'thing:named': named, 'thing:gone': gone },
    });

  beforeAll(() => t.db.query('create table things (id uuid primary key, name text not null)'));

  test.each([
    ['the default, which lets no stream repeat', upsert],
    ['the last of each key', lastPer(['thing_id'], upsert)],
  ])('does not: %s', async (_title, named) => {
    await assertSame(things(named));
  });

  test.each([
    ['a row twice in one statement', all(upsert)],
    ['the last of a key that several rows share', lastPer(['name'], upsert)],
  ])('is found: %s', async (_title, named) => {
    await expect(assertSame(things(named))).rejects.toThrow('Property failed');
  });
});
