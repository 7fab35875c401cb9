import { v5, v7 } from 'uuid';
import type { Decider, DomainEvent } from '../kernel/decider';
import type { JsonObject } from '../kernel/json';
import {
  decideTogether,
  reservation,
  reservationStream,
  type Reservation,
  type ReservationCommand,
  type ReservationEvent,
} from '../domain/reservations';
import {
  RevisionConflict,
  type AppendResult,
  type EventStore,
  type NewEvent,
  type StoredEvent,
  type StreamWrite,
} from '../engines/event-store/port';
import type { Caller, RequestContext } from './caller';
import type { Services } from './services';

/** Namespace of ids that derive from an idempotency seed; any fixed UUID does. */
const NAMESPACE = '0d1b5d0e-6a0c-4c38-9d0a-3f4f3c1f6d5a';
const ATTEMPTS = 8;

export interface Handling<State, Command, Event extends DomainEvent> {
  decider: Decider<State, Command, Event>;
  stream: string;
  command: Command;
  /**
   * What must hold of the state before the command is decided; throws what the caller is told. A command that was
   * stored before is past it.
   */
  given?(state: State): void;
  /** Tells several commands of one request on one stream apart; each then has event ids of its own. */
  step?: string;
  /** Values that these events take or give back, in the same atomic append. */
  reservations?(events: readonly Event[], state: State): readonly ReservationCommand[];
  /** Writes to further streams in the same atomic append (their events by {@link newEvents}). */
  also?(events: readonly Event[], state: State): readonly StreamWrite[] | Promise<readonly StreamWrite[]>;
}

export interface Handled<State, Event> {
  /** After the events. */
  state: State;
  /** What was decided; empty when there was nothing to change. */
  events: Event[];
  /** True when an earlier call with the same idempotency seed had stored them already. */
  replayed: boolean;
  /** Null when nothing was appended. */
  result: AppendResult | null;
}

/**
 * The write path (design §5): loads the stream, decides, appends at the revision it read, and starts again on a
 * conflict, at most 8 times. With an idempotency seed event ids derive from it: a command that was stored but never
 * answered is recognised in its stream and answered without being decided again. The stream's own id must then derive
 * from the seed as well, see {@link newId}.
 * @throws DomainError of `decide`; Taken when another owner holds a reserved value; RevisionConflict when every attempt
 * lost.
 */
export async function handle<State, Command, Event extends DomainEvent>(
  request: { caller: Caller; context: RequestContext },
  services: Pick<Services, 'events' | 'commit' | 'settle'>,
  handling: Handling<State, Command, Event>,
): Promise<Handled<State, Event>> {
  const { decider, stream, command } = handling;
  const seed = request.context.idempotency_seed;
  const label = handling.step === undefined ? stream : `${stream}\n${handling.step}`;
  for (let attempt = 1; ; attempt += 1) {
    const stored = await services.events.read(stream);
    const before = stored
      .map((event) => fromStored<Event>(event))
      .reduce((state, event) => decider.evolve(state, event), decider.initial);
    const earlier = seed === null ? [] : ofSeed(stored, seed, label);
    if (earlier.length > 0) {
      const { position } = earlier[earlier.length - 1]!;
      await services.settle(request.context, { position, types: typesOf(earlier) });
      return { state: before, events: earlier.map((event) => fromStored<Event>(event)), replayed: true, result: null };
    }

    handling.given?.(before);
    const events = decider.decide(before, command);
    if (events.length === 0) return { state: before, events, replayed: false, result: null };
    const state = events.reduce((current, event) => decider.evolve(current, event), before);
    const expected = stored.length === 0 ? 'none' : stored[stored.length - 1]!.revision;
    const writes: StreamWrite[] = [{ stream, expected, events: newEvents(request.context, label, events) }];
    for (const [of_stream, wanted] of byStream(handling.reservations?.(events, state) ?? [])) {
      const write = await reservationWrite(request.context, services.events, of_stream, wanted);
      if (write) writes.push(write);
    }
    writes.push(...((await handling.also?.(events, state)) ?? []));
    try {
      const result = await services.commit(request, writes);
      const kept = seed === null ? [] : await keptInstead(services.events, result, writes[0]!, seed, label);
      if (kept.length === 0) return { state, events, replayed: false, result };
      const first = kept.map((event) => fromStored<Event>(event));
      const then = first.reduce((current, event) => decider.evolve(current, event), before);
      return { state: then, events: first, replayed: true, result };
    } catch (error) {
      if (!(error instanceof RevisionConflict) || attempt === ATTEMPTS) throw error;
      // Losers of one race should not all meet again at once.
      await new Promise((resume) => setTimeout(resume, Math.random() * Math.min(2 ** attempt, 50)));
    }
  }
}

const typesOf = (events: readonly { type: string }[]): string[] => events.map(({ type }) => type);

/**
 * What is stored under these event ids when it is not what was decided here: an append whose ids are known answers with
 * the first result, and under one seed another process may have decided first, at another time or with another secret.
 * Empty when the events are ours.
 */
async function keptInstead(
  events: EventStore,
  result: AppendResult,
  write: StreamWrite,
  seed: string,
  label: string,
): Promise<StoredEvent[]> {
  const from = result.revisions[write.stream]! - write.events.length + 1;
  const stored = ofSeed(await events.read(write.stream, from), seed, label);
  const ours = write.events.every(({ data }, n) => JSON.stringify(data) === JSON.stringify(stored[n]?.data));
  return ours && stored.length === write.events.length ? [] : stored;
}

/** The state of one stream and its revision; null when it does not exist. */
export async function load<State, Event extends DomainEvent>(
  events: EventStore,
  decider: Pick<Decider<State, never, Event>, 'initial' | 'evolve'>,
  stream: string,
): Promise<{ state: State; revision: number } | null> {
  const stored = await events.read(stream);
  if (stored.length === 0) return null;
  const state = stored.reduce((current, event) => decider.evolve(current, fromStored<Event>(event)), decider.initial);
  return { state, revision: stored[stored.length - 1]!.revision };
}

/**
 * An id for something new: derived from the idempotency seed and `label` when there is a seed, so that a retry names
 * the same thing; else a UUIDv7.
 */
export function newId(context: Pick<RequestContext, 'idempotency_seed'>, label: string): string {
  return context.idempotency_seed === null ? v7() : v5(`${context.idempotency_seed}\n${label}`, NAMESPACE);
}

/**
 * Domain events as the store takes them; `type` moves beside the data, ids as in {@link newId}. `label` is the stream
 * they are for.
 */
export function newEvents(
  context: Pick<RequestContext, 'idempotency_seed'>,
  label: string,
  events: readonly DomainEvent[],
): NewEvent[] {
  return events.map(({ type, ...data }, index) => ({
    id: newId(context, `${label}\n${index}`),
    type,
    data: data as unknown as JsonObject,
  }));
}

/** A stored event as the domain knows it. */
export function fromStored<Event extends DomainEvent>(event: Pick<StoredEvent, 'type' | 'data'>): Event {
  return { ...event.data, type: event.type } as unknown as Event;
}

function ofSeed(stored: readonly StoredEvent[], seed: string, label: string): StoredEvent[] {
  const first = newId({ idempotency_seed: seed }, `${label}\n0`);
  const start = stored.findIndex((event) => event.id === first);
  if (start === -1) return [];
  let length = 1;
  while (stored[start + length]?.id === newId({ idempotency_seed: seed }, `${label}\n${length}`)) length += 1;
  return stored.slice(start, start + length);
}

/** One append writes a stream once, so commands on one value are decided together. */
function byStream(wanted: readonly ReservationCommand[]): Map<string, ReservationCommand[]> {
  const streams = new Map<string, ReservationCommand[]>();
  for (const command of wanted) {
    const stream = reservationStream(command.kind, command.value);
    streams.set(stream, [...(streams.get(stream) ?? []), command]);
  }
  return streams;
}

async function reservationWrite(
  context: RequestContext,
  events: EventStore,
  stream: string,
  wanted: readonly ReservationCommand[],
): Promise<StreamWrite | undefined> {
  const held = await load<Reservation, ReservationEvent>(events, reservation, stream);
  const decided = decideTogether(held?.state ?? reservation.initial, wanted);
  if (decided.length === 0) return undefined;
  return { stream, expected: held?.revision ?? 'none', events: newEvents(context, stream, decided) };
}
