import type { AnyEventSet } from '../kernel/event';
import { declareReactor, type Reactor, type ReactorSpec } from '../kernel/reactor';
import type { Enqueued } from '../kernel/job';
import type { Queryable } from '../engines/postgres/port';
import type { Act } from './write-path/act';
import type { AreaJob } from './job';

/** Dependencies of a reaction. */
export interface ReactionTools {
  /**
   * Runs a command in the reactor's name. Its seed is the event's id, so that a repeated reaction does not append
   * twice. Two commands on one stream need different `step`s.
   */
  act: Act;
  /** Reads the database, including the writes for the events before this one. */
  db: Pick<Queryable, 'query'>;
  /** Adds a statement to the transaction that moves the reactor's checkpoint, so it takes effect exactly once. */
  keep(text: string, values: readonly unknown[]): void;
  /**
   * Adds a job to the transaction that moves the reactor's checkpoint. Two jobs of one reaction need different keys,
   * which should begin with the event's id.
   */
  enqueue<Payload>(declared: AreaJob<Payload>, one: Enqueued<Payload>): void;
  /** Cancels the waiting jobs of an owner, in the transaction that moves the reactor's checkpoint. */
  cancel(owner: string): void;
  /** Time of the reaction; RFC 3339. */
  now: string;
}

export type AreaReactor = Reactor<ReactionTools>;

/** Declares a process manager of an area. Files at the first level of `reactors/` are discovered and run. */
export const reactor = <const Sets extends readonly AnyEventSet[]>(
  spec: ReactorSpec<Sets, ReactionTools>,
): AreaReactor => declareReactor(spec);
