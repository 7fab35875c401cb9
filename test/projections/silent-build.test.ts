import { v7 as uuid } from 'uuid';
import { readCheckpoints } from '../../projections/runtime/checkpoint/checkpoints';
import { listDeadLetters } from '../../projections/runtime/dead-letter/dead-letters';
import { allMessages } from '../support/outbox';
import { retryDeadLetter } from '../../projections/runtime/dead-letter/retry-letters';
import type { EventProjection, Projection, RecordProjection } from '../../kernel/projection';
import { recordRevocations } from '../../projections/runtime/outbox/revocations';
import type { TestDatabase } from '../support/database';
import { engines, type Engines, eventTally, fold, rowsOf, runtimeOf, tally, until } from '../support/projections';
import { talliedDatabase } from '../support/tallied';

let t: TestDatabase;
let on: Engines;

const { publish, happen, total } = talliedDatabase((database, embedded) => ([t, on] = [database, embedded]));

/** Every event also revokes a credential of its id. */
const revoking = (): EventProjection => {
  const plain = eventTally();
  return {
    ...plain,
    async apply(batch, tx, mode) {
      await recordRevocations(
        tx,
        mode,
        batch.map(({ id }) => ({ credential_id: id })),
      );
      return plain.apply(batch, tx, mode);
    },
  };
};

const announced = async () => (await allMessages(t.db)).map(({ data }) => JSON.parse(data).id as string);
const revoked = async () =>
  (await t.db.query('select credential_id from revocations order by id')).map(({ credential_id }) => credential_id);
const built = async (p: Projection) => [...(await readCheckpoints(t.db, p)).values()].every((one) => one.built);
const ids = (entries: readonly [string, string][]) => entries.map(([, id]) => id).sort();

/** Stops at the n-th batch for as long as the gate is shut. */
function gated(p: RecordProjection, nth: number): { p: RecordProjection; reached: Promise<void>; open(): void } {
  let open: () => void = () => undefined;
  let arrive: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const reached = new Promise<void>((resolve) => (arrive = resolve));
  let batches = 0;
  const apply: RecordProjection['apply'] = async (batch, tx, mode) => {
    batches += 1;
    if (batches >= nth) {
      arrive();
      await gate;
    }
    return p.apply(batch, tx, mode);
  };
  return { p: { ...p, apply }, reached, open };
}

describe('a projection that was never driven', () => {
  test('over an empty source is live at once: everything is announced', async () => {
    const runtime = runtimeOf(t.db, on, [tally(), revoking()]);
    await runtime.start();
    expect(await built(tally())).toBe(true);
    expect(await built(eventTally())).toBe(true);
    const published = await publish(20);
    const happened = await happen(6);
    await until(async () => (await announced()).length === 26);
    await runtime.stop();
    expect((await announced()).sort()).toEqual([...ids(published), ...ids(happened)].sort());
    expect((await revoked()).sort()).toEqual(ids(happened));
  });

  test('is built silently up to the ends that were read at its start; after them everything is announced', async () => {
    const before = await publish(300);
    const past = await happen(40);
    const runtime = runtimeOf(t.db, on, [tally(), revoking()], { batch_records: 16, batch_events: 7 });
    await runtime.start();
    const after = await publish(50);
    const later = await happen(20);
    await until(async () => (await total('tally')) === 350 && (await total('event_tally')) === 60);
    await until(() => runtime.lag().every(({ state }) => state === 'running'));
    await runtime.stop();
    expect(await rowsOf(t.db)).toEqual(fold([...before, ...after]));
    expect(await rowsOf(t.db, 'event_tally')).toEqual(fold([...past, ...later]));
    expect((await announced()).sort()).toEqual([...ids(after), ...ids(later)].sort());
    expect((await revoked()).sort()).toEqual(ids(later));
  });

  test('that was interrupted goes on in silence to the ends of its first start, by another process too', async () => {
    const before = await publish(200);
    const { p, reached, open } = gated(tally(), 3);
    const first = runtimeOf(t.db, on, [p], { batch_records: 10, drain_ms: 50 });
    await first.start();
    await reached;
    expect(first.lag()[0]!.state).toBe('building');
    const stopped = first.stop();
    open();
    await stopped;
    expect(await built(tally())).toBe(false);
    // What came while nobody drove is news all the same.
    const meanwhile = await publish(30);
    const other = await engines(t.db);
    const second = runtimeOf(t.db, other, [tally()], { batch_records: 10 });
    await second.start();
    await until(async () => (await total('tally')) === 230);
    await until(() => built(tally()));
    await second.stop();
    await other.close();
    expect(await rowsOf(t.db)).toEqual(fold([...before, ...meanwhile]));
    expect((await announced()).sort()).toEqual(ids(meanwhile));
  });

  test('is built when only events of other types are left to pass', async () => {
    await happen(2);
    const event = { id: uuid(), type: 'other:happened', data: {} };
    await on.events.append([{ stream: 'other', expected: 'any', events: [event] }], {});
    const runtime = runtimeOf(t.db, on, [eventTally()]);
    await runtime.start();
    await until(() => built(eventTally()));
    await runtime.stop();
  });

  test('parks silently: a retry of what came before announces nothing, of what came after it does', async () => {
    await publish(1, 'poison:sql');
    const runtime = runtimeOf(t.db, on, [tally()]);
    await runtime.start();
    await publish(1, 'poison:sql');
    await until(async () => (await listDeadLetters(t.db)).length === 2);
    await runtime.stop();
    const mended: RecordProjection = {
      ...tally(),
      apply: (batch, tx, mode) =>
        tally().apply(
          batch.map((one) => ({ ...one, raw: '1' })),
          tx,
          mode,
        ),
    };
    const letters = await listDeadLetters(t.db);
    expect(letters.map(({ silent }) => silent)).toEqual([true, false]);
    const deps = { db: t.db, ...on, projections: [mended] };
    for (const { id } of letters) await retryDeadLetter(deps, id);
    expect(await total('tally')).toBe(2);
    expect(await announced()).toHaveLength(1);
  });
});
