import { pause } from '../../lib/async/signal';
import type { CommandResult, ActOptions } from '../../kernel/operations/act';
import type { Decider, DomainEvent } from '../../kernel/decider';
import type { ReservationCommand } from '../../domain/common/reservations';
import {
  RevisionConflict,
  type AppendResult,
  type EventStore,
  type StoredEvent,
  type StreamWrite,
} from '../../engines/event-store/port';
import type { Caller, RequestContext } from '../../access/authentication/caller';
import type { Services } from '../services';
import { newEvents, newId } from './event-ids';
import { reservationWrites } from './reserving';
import { SeededIds } from './seeded-ids';
import { fromStored, type LoadedAggregate, aggregateCacheOf } from './aggregate-cache';
import { ConflictQueue } from './conflict-queue';

const ATTEMPTS = 8;
/** Longest wait for a turn in the queue of retries. */
const TURN_MS = 1000;
const turns = new ConflictQueue();

export interface Handling<State, Command, Event extends DomainEvent> extends ActOptions<
  State,
  Event,
  ReservationCommand
> {
  decider: Decider<State, Command, Event>;
  stream: string;
  command: Command;
}

/**
 * The write path (design §5): loads the stream, decides, appends at the loaded revision, and retries on a conflict, at
 * most 8 times. Under an idempotency seed event ids derive from it: a stored but unanswered command is recognised in
 * its stream and answered without a new decision. The stream's own id must then derive from the seed as well, see
 * {@link newId}.
 * @throws DomainError of `decide`; Taken when another owner holds a reserved value; RevisionConflict when every attempt
 * lost.
 */
export async function handle<State, Command, Event extends DomainEvent>(
  request: { caller: Caller; context: RequestContext },
  services: Pick<Services, 'events' | 'commit' | 'awaitShown'>,
  handling: Handling<State, Command, Event>,
): Promise<CommandResult<State, Event>> {
  let done: (() => void) | undefined;
  // Called after the append: the next in the queue need not wait for the read models.
  const pass = () => {
    done?.();
    done = undefined;
  };
  try {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await handleOnce(request, services, handling, pass);
      } catch (error) {
        if (!(error instanceof RevisionConflict) || attempt === ATTEMPTS) throw error;
        // Release the turn before waiting for the next one, so that two callers never wait for each other.
        pass();
        // A random pause spreads the retries of all nodes.
        await pause(Math.random() * Math.min(2 ** attempt, 50));
        done = await turns.next(error.stream, TURN_MS);
      }
    }
  } finally {
    pass();
  }
}

/** @throws RevisionConflict when another append was first */
async function handleOnce<State, Command, Event extends DomainEvent>(
  request: { caller: Caller; context: RequestContext },
  services: Pick<Services, 'events' | 'commit' | 'awaitShown'>,
  handling: Handling<State, Command, Event>,
  onAppended: () => void,
): Promise<CommandResult<State, Event>> {
  const { decider, stream, command } = handling;
  const seed = request.context.idempotency_seed;
  const label = handling.step === undefined ? stream : `${stream}\n${handling.step}`;
  const { state: before, revision, seeded } = await loadFor(services.events, decider, stream);
  const { seed_since } = request.context;
  const first =
    seed === null ? undefined : await seeded.revisionOf(services.events, stream, firstId(seed, label), seed_since);
  if (seed !== null && first !== undefined && first <= revision) {
    const earlier = await storedUnder(services.events, stream, first, seed, label);
    const { position } = earlier[earlier.length - 1]!;
    await services.awaitShown(request.context, { position, types: typesOf(earlier) });
    return { state: before, events: earlier.map((event) => fromStored<Event>(event)), replayed: true, result: null };
  }

  const refusal = handling.precondition?.(before);
  if (refusal) throw refusal;
  const events = decider.decide(before, command);
  if (events.length === 0) return { state: before, events, replayed: false, result: null };
  const state = events.reduce((current, event) => decider.evolve(current, event), before);
  const expected = decider.stateless ? 'any' : revision === -1 ? 'none' : revision;
  const writes: StreamWrite[] = [{ stream, expected, events: newEvents(request.context, label, events) }];
  const reserved = handling.reservations?.(events, state) ?? [];
  writes.push(...(await reservationWrites(request.context, services.events, reserved)));
  writes.push(...((await handling.additionalWrites?.(events, state)) ?? []));
  const result = await services.commit(request, writes, onAppended);
  const kept = seed === null ? [] : await keptInstead(services.events, decider, result, writes[0]!, seed, label);
  if (kept.length === 0) return { state, events, replayed: false, result };
  const stored = kept.map((event) => fromStored<Event>(event));
  const then = stored.reduce((current, event) => decider.evolve(current, event), before);
  return { state: then, events: stored, replayed: true, result };
}

/** Skips the read for a stateless decider: the store recognises event ids that it has, so a replay is still found. */
const loadFor = async <State, Event extends DomainEvent>(
  events: EventStore,
  decider: Pick<Decider<State, never, Event>, 'initial' | 'stateless' | 'evolve'>,
  stream: string,
): Promise<LoadedAggregate<State>> =>
  decider.stateless
    ? { state: decider.initial, revision: -1, seeded: new SeededIds() }
    : aggregateCacheOf(events).load(decider, stream);

const typesOf = (events: readonly { type: string }[]): string[] => events.map(({ type }) => type);

/**
 * Returns the events stored under these ids when they differ from the decided ones: an append of known ids returns the
 * first result, and another process may have decided first under the same seed, at another time or with another secret.
 * Empty when the stored events are ours.
 */
async function keptInstead<State, Event extends DomainEvent>(
  events: EventStore,
  decider: Decider<State, never, Event>,
  result: AppendResult,
  write: StreamWrite,
  seed: string,
  label: string,
): Promise<StoredEvent[]> {
  const from = result.revisions[write.stream]! - write.events.length + 1;
  let stored = await storedUnder(events, write.stream, from, seed, label);
  if (stored.length === 0) {
    // The first append had another number of events, so its events begin at another revision.
    const { seeded } = await aggregateCacheOf(events).load(decider, write.stream);
    const first = await seeded.revisionOf(events, write.stream, firstId(seed, label), undefined);
    stored = await storedUnder(events, write.stream, first ?? from, seed, label);
  }
  const ours = write.events.every(({ data }, n) => JSON.stringify(data) === JSON.stringify(stored[n]?.data));
  return ours && stored.length === write.events.length ? [] : stored;
}

const firstId = (seed: string, label: string): string => newId({ idempotency_seed: seed }, `${label}\n0`);

/** Most events of one command that are read at a time. */
const PAGE = 64;

/** Events of one command: those from revision `from` on whose ids derive from the seed. */
async function storedUnder(
  events: EventStore,
  stream: string,
  from: number,
  seed: string,
  label: string,
): Promise<StoredEvent[]> {
  const found: StoredEvent[] = [];
  for (;;) {
    const page = await events.read(stream, from + found.length, { limit: PAGE });
    for (const event of page) {
      if (event.id !== newId({ idempotency_seed: seed }, `${label}\n${found.length}`)) return found;
      found.push(event);
    }
    if (page.length < PAGE) return found;
  }
}
