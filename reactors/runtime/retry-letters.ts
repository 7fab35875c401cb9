import type { AreaReactor } from '../../app/reactor';
import { CannotReact } from '../../kernel/reactor';
import type { StoredEvent } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';
import { lockCheckpoints } from '../../projections/runtime/checkpoint/checkpoints';
import { laneColumn, laneOfLetter, type DeadLetter } from '../../projections/runtime/dead-letter/dead-letters';
import { describe } from '../../projections/runtime/drive/failures';
import { lockLetter, NotSettled, type Settled } from '../../projections/runtime/dead-letter/retry-letters';
import type { Write } from './kept-writes';
import { readerOf } from './runner';
import { toolsFor, type ToolsDeps } from './tools';

export interface SettleReactionDeps extends ToolsDeps {
  reactors: readonly AreaReactor[];
  /** Decodes events that were kept in their stored form. */
  readStored(events: readonly StoredEvent[]): Promise<StoredEvent[]>;
}

/** Whether the letter is of a reactor. */
export const isOfReactor = ({ projection }: Pick<DeadLetter, 'projection'>): boolean =>
  projection.startsWith('reactor:');

/**
 * Reacts to a parked event and then to the events that wait behind it in its lane, in order, up to the first failure. A
 * reaction's writes and its letter's end are one transaction, with the live reactor blocked at its fence.
 * @throws NotSettled; any error of a reaction that is not a declared data error
 */
export async function retryReaction(deps: SettleReactionDeps, id: number): Promise<Settled> {
  const { reactor, letter } = await find(deps, id);
  return goOn(deps, reactor, laneOfLetter(letter));
}

/** Drops a parked event for good and continues its lane. @throws as {@link retryReaction} */
export async function dropReaction(deps: SettleReactionDeps, id: number): Promise<Settled> {
  const { reactor, letter } = await find(deps, id);
  await deps.db.transaction(async (tx) => {
    await lockCheckpoints(tx, readerOf(reactor));
    await lockLetter(tx, id);
    await end(tx, letter, 'dropped');
  });
  const head = await firstWaiting(deps.db, letter.projection, laneOfLetter(letter));
  // An earlier event of the lane is parked for its own failure.
  if (head !== undefined && head.reason !== 'blocked') {
    const waiting = await countWaiting(deps.db, letter.projection, laneOfLetter(letter));
    return { retried: 0, dropped: 1, waiting, error: null };
  }
  return { ...(await goOn(deps, reactor, laneOfLetter(letter))), dropped: 1 };
}

async function find(deps: SettleReactionDeps, id: number): Promise<{ reactor: AreaReactor; letter: DeadLetter }> {
  const letter = await lockLetter(deps.db, id);
  const reactor = deps.reactors.find((one) => readerOf(one).name === letter.projection);
  if (!reactor) throw new NotSettled(`dead letter ${id} is of ${letter.projection}, which this program does not have`);
  return { reactor, letter };
}

async function goOn(deps: SettleReactionDeps, reactor: AreaReactor, lane: string): Promise<Settled> {
  const place = readerOf(reactor);
  let retried = 0;
  for (;;) {
    const letter = await firstWaiting(deps.db, place.name, lane);
    if (letter === undefined) return { retried, dropped: 0, waiting: 0, error: null };
    // A restore into another event store changes the letter's position, not the stored event's.
    const kept = { ...(JSON.parse(letter.event!) as StoredEvent), position: letter.position };
    const [event] = await deps.readStored([kept]);
    const writes: Write[] = [];
    try {
      await reactor.react(
        event!,
        toolsFor(deps, reactor.name, event!, writes, async () => undefined),
      );
    } catch (error) {
      if (!(error instanceof CannotReact)) throw error;
      await failed(deps.db, letter.id, describe(error));
      const waiting = await countWaiting(deps.db, place.name, lane);
      return { retried, dropped: 0, waiting, error: describe(error) };
    }
    await deps.db.transaction(async (tx) => {
      // From here to the commit the live reactor parks nothing behind a lane that is being freed.
      await lockCheckpoints(tx, place);
      await lockLetter(tx, letter.id);
      for (const write of writes) await write.run(tx);
      await end(tx, letter, 'retried');
    });
    if (writes.some(({ wakes }) => wakes)) deps.jobs.wake();
    retried += 1;
  }
}

const WAITING = `from dead_letters
  where projection = $1 and ${laneColumn()} = $2 and status = 'parked'`;

async function firstWaiting(db: Queryable, name: string, lane: string): Promise<DeadLetter | undefined> {
  return (await db.query<DeadLetter>(`select * ${WAITING} order by id limit 1`, [name, lane]))[0];
}

async function countWaiting(db: Queryable, name: string, lane: string): Promise<number> {
  const [row] = await db.query<{ waiting: number }>(`select count(*) as waiting ${WAITING}`, [name, lane]);
  return row!.waiting;
}

const end = (tx: Queryable, { id }: DeadLetter, status: 'retried' | 'dropped'): Promise<unknown> =>
  tx.query(
    `update dead_letters set status = $2, settled_at = clock_timestamp(),
       attempts = attempts + case when $2 = 'retried' then 1 else 0 end
     where id = $1`,
    [id, status],
  );

const failed = (db: Queryable, id: number, error: string): Promise<unknown> =>
  db.query(
    `update dead_letters set reason = 'poison', error = $2, attempts = attempts + 1, last_failed_at = clock_timestamp()
     where id = $1 and status = 'parked'`,
    [id, error],
  );
