import type { AreaReactor } from '../../access/reactor';
import { CannotReact } from '../../kernel/reactor';
import type { StoredEvent } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';
import { lockCheckpoints } from '../../projections/runtime/checkpoints';
import type { DeadLetter } from '../../projections/runtime/dead-letters';
import { describe } from '../../projections/runtime/failures';
import { lockLetter, NotSettled, type Settled } from '../../projections/runtime/retry-letters';
import { placeOf } from './runner';
import { toolsFor, type ToolsDeps, type Write } from './tools';

export interface SettleReactionDeps extends ToolsDeps {
  reactors: readonly AreaReactor[];
  /** Makes events readable that were kept as they are stored. */
  readStored(events: readonly StoredEvent[]): Promise<StoredEvent[]>;
}

/** Whether the letter is of a reactor. */
export const isOfReactor = ({ projection }: Pick<DeadLetter, 'projection'>): boolean =>
  projection.startsWith('reactor:');

/**
 * Reacts to a parked event and then to what waits behind it in its stream, in order, up to the first failure. What a
 * reaction keeps and its letter's end are one transaction, with the live side held at its fence.
 * @throws NotSettled; whatever a reaction throws that is no declared data error
 */
export async function retryReaction(deps: SettleReactionDeps, id: number): Promise<Settled> {
  const { reactor, letter } = await find(deps, id);
  return goOn(deps, reactor, letter.stream!);
}

/** Gives a parked event up for good; the stream that waited behind it goes on. @throws as {@link retryReaction} */
export async function dropReaction(deps: SettleReactionDeps, id: number): Promise<Settled> {
  const { reactor, letter } = await find(deps, id);
  await deps.db.transaction(async (tx) => {
    await lockCheckpoints(tx, placeOf(reactor));
    await lockLetter(tx, id);
    await end(tx, letter, 'dropped');
  });
  const head = await firstWaiting(deps.db, letter.projection, letter.stream!);
  // An earlier event of the stream is parked for a reason of its own.
  if (head !== undefined && head.reason !== 'blocked') {
    const waiting = await countWaiting(deps.db, letter.projection, letter.stream!);
    return { retried: 0, dropped: 1, waiting, error: null };
  }
  return { ...(await goOn(deps, reactor, letter.stream!)), dropped: 1 };
}

async function find(deps: SettleReactionDeps, id: number): Promise<{ reactor: AreaReactor; letter: DeadLetter }> {
  const letter = await lockLetter(deps.db, id);
  const reactor = deps.reactors.find((one) => placeOf(one).name === letter.projection);
  if (!reactor) throw new NotSettled(`dead letter ${id} is of ${letter.projection}, which this program does not have`);
  return { reactor, letter };
}

async function goOn(deps: SettleReactionDeps, reactor: AreaReactor, stream: string): Promise<Settled> {
  const place = placeOf(reactor);
  let retried = 0;
  for (;;) {
    const letter = await firstWaiting(deps.db, place.name, stream);
    if (letter === undefined) return { retried, dropped: 0, waiting: 0, error: null };
    // A restore into another event store moves the letter, not what it holds.
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
      const waiting = await countWaiting(deps.db, place.name, stream);
      return { retried, dropped: 0, waiting, error: describe(error) };
    }
    await deps.db.transaction(async (tx) => {
      // From here to the commit the live side parks nothing behind a stream that is being freed.
      await lockCheckpoints(tx, place);
      await lockLetter(tx, letter.id);
      for (const write of writes) await write.run(tx);
      await end(tx, letter, 'retried');
    });
    if (writes.some(({ wakes }) => wakes)) deps.jobs.wake();
    retried += 1;
  }
}

const WAITING = `from dead_letters where projection = $1 and stream = $2 and status = 'parked'`;

async function firstWaiting(db: Queryable, name: string, stream: string): Promise<DeadLetter | undefined> {
  return (await db.query<DeadLetter>(`select * ${WAITING} order by revision limit 1`, [name, stream]))[0];
}

async function countWaiting(db: Queryable, name: string, stream: string): Promise<number> {
  const [row] = await db.query<{ waiting: number }>(`select count(*) as waiting ${WAITING}`, [name, stream]);
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
