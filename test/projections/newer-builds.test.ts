import { v7 as uuid } from 'uuid';
import { versionedEventStore } from '../../engines/event-store/decorators/versioned';
import { domainEvents, projection, type EventProjection } from '../../kernel/projection';
import { createUpcasters } from '../../kernel/upcasters';
import { listDeadLetters } from '../../projections/runtime/dead-letter/dead-letters';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import type { TestDatabase } from '../support/database';
import { enginesOfEach } from '../support/each';
import { keptLog, silentLog } from '../support/log';
import { createTally, type Engines, eventTally, fold, rowsOf, runtimeOf, until } from '../support/projections';

let t: TestDatabase;
let on: Engines;

enginesOfEach(
  (database, embedded) => {
    [t, on] = [database, embedded];
    return createTally(t.db, 'event_tally');
  },
  { connections: 20 },
);

const OLD_TYPES = ['thing:happened', 'other:happened'];
const NEW_TYPES = [...OLD_TYPES, 'thing:undone'];

/** A build as its projections see the log: what it does not know comes marked. */
const build = (types: readonly string[], log = silentLog) => {
  const events = versionedEventStore(on.events, createUpcasters([]), new Set(types));
  const things = types.filter((type) => type.startsWith('thing:'));
  const p: EventProjection = projection({ ...eventTally(), from: domainEvents(things) });
  return { p, events, runtime: runtimeOf(t.db, { ...on, events }, [p], { log }) };
};

async function happen(type: string, stream = 'thing-1'): Promise<[string, string]> {
  const id = uuid();
  await on.events.append([{ stream, expected: 'any', events: [{ id, type, data: {} }] }], {});
  return [stream, id];
}
const total = async () => (await t.db.query('select coalesce(sum(n), 0)::int as n from event_tally'))[0]!.n as number;

describe('an event of a type that only a newer build knows', () => {
  test('stops the projection of an older one in front of it; a newer one goes on from there, beside it', async () => {
    const log = keptLog();
    const older = build(OLD_TYPES, log);
    await older.runtime.start();
    const happened = [await happen('thing:happened'), await happen('thing:happened', 'thing-2')];
    happened.push(await happen('thing:undone'), await happen('thing:happened', 'thing-3'));
    await until(() => older.runtime.lag()[0]!.state === 'needs_newer_build');
    expect(await rowsOf(t.db, 'event_tally')).toEqual(fold(happened.slice(0, 2)));
    expect(log.lines.filter(({ level }) => level === 'error')).toMatchObject([
      { message: expect.stringMatching(/event_tally needs a newer build: thing:undone: .* has no such type/) },
    ]);

    const newer = build(NEW_TYPES);
    await newer.runtime.start();
    await until(async () => (await total()) === 4);
    await until(() => older.runtime.lag()[0]!.state === 'standby');
    happened.push(await happen('thing:undone'));
    await until(async () => (await total()) === 5);
    // The newer one is taken away again: what it wrote last is passed, what comes now is not.
    await newer.runtime.stop();
    happened.push(await happen('thing:happened'));
    await until(async () => (await total()) === 6);
    await happen('thing:undone');
    await until(() => older.runtime.lag()[0]!.state === 'needs_newer_build');
    await older.runtime.stop();
    expect(await rowsOf(t.db, 'event_tally')).toEqual(fold(happened));
    expect(await listDeadLetters(t.db)).toEqual([]);
  });

  test('of another area is none of its business', async () => {
    const older = build(OLD_TYPES);
    await older.runtime.start();
    await happen('elsewhere:invented');
    await happen('thing:happened');
    await until(async () => (await total()) === 1);
    await older.runtime.stop();
  });

  test('is no letter of a rebuild by an older one: that is refused', async () => {
    const { p, runtime } = build(NEW_TYPES);
    await runtime.start();
    await happen('thing:undone');
    await until(async () => (await total()) === 1);
    await runtime.stop();
    const older = build(OLD_TYPES);
    const rebuilding = rebuild({ db: t.db, ...on, events: older.events, projections: [older.p], name: p.name });
    await expect(rebuilding).rejects.toThrow('thing:undone: stored as version 1, this program has no such type');
    expect(await total()).toBe(1);
  });
});
