import type { AnyEventSet } from '../kernel/event';
import { declareReactor, type Reactor, type ReactorSpec } from '../kernel/reactor';
import type { Enqueued } from '../kernel/job';
import type { Queryable } from '../engines/postgres/port';
import type { Act } from './act';
import type { AreaJob } from './job';

/** What a reaction works with. */
export interface ReactionTools {
  /**
   * Decides a command in the reactor's name; its seed is the event's id, so that a reaction that is done again appends
   * nothing twice. Two commands on one stream are told apart by `step`.
   */
  act: Act;
  /** Reads what this process knows, and all that was kept for the events before this one. */
  db: Pick<Queryable, 'query'>;
  /** A statement that is written in the transaction that moves the reactor's checkpoint, so exactly once. */
  keep(text: string, values: readonly unknown[]): void;
  /**
   * A job that is stored in the transaction that moves the reactor's checkpoint. Two of one reaction are told apart by
   * their keys, which should begin with the event's.
   */
  enqueue<Payload>(declared: AreaJob<Payload>, one: Enqueued<Payload>): void;
  /** When the reaction is done; RFC 3339. */
  now: string;
}

export type AreaReactor = Reactor<ReactionTools>;

/** Declares a process manager of an area. Files at the first level of `reactors/` are found and driven. */
export const reactor = <const Sets extends readonly AnyEventSet[]>(
  spec: ReactorSpec<Sets, ReactionTools>,
): AreaReactor => declareReactor(spec);
