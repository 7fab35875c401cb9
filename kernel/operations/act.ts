import type { AppendResult, StreamWrite } from '../../engines/event-store/port';
import type { Decider, DomainEvent } from '../decider';
import type { DomainError } from '../errors';

/** A command as it is asked for: `act` says when. */
export type WithoutNow<Command> = Command extends { now: string }
  ? Omit<Command, 'now'> & Partial<Pick<Command, 'now'>>
  : Command;

/** Options of a command; `Reservation` is how values that must be unique are claimed and released. */
export interface ActOptions<State, Event extends DomainEvent, Reservation> {
  /**
   * Precondition on the state before the command is decided: returns, or throws, the caller's error when it fails. A
   * command whose events are stored already skips it.
   */
  precondition?(state: State): DomainError | false | null | undefined | void;
  /** Tells several commands of one request on one stream apart; each then has event ids of its own. */
  step?: string;
  /** Values that these events take or give back, in the same atomic append. */
  reservations?(events: readonly Event[], state: State): readonly Reservation[];
  /** Writes to further streams in the same atomic append. */
  additionalWrites?(events: readonly Event[], state: State): readonly StreamWrite[] | Promise<readonly StreamWrite[]>;
}

/** Result of a command. */
export interface CommandResult<State, Event> {
  /** After the events. */
  state: State;
  /** The decided events; empty when there was nothing to change. */
  events: Event[];
  /** True when an earlier call with the same idempotency seed had stored them already. */
  replayed: boolean;
  /** Null when nothing was appended. */
  result: AppendResult | null;
}

/**
 * Decides a command on a stream on behalf of the request's caller, and waits for the read models that read what came of
 * it. Reads the stream once: what must hold of its state beforehand is `given`. `now` is the request's, when it is left
 * out.
 * @throws DomainError of `decide`, whatever `given` says, RevisionConflict
 */
export type Act<Reservation> = <State, Command, Event extends DomainEvent>(
  decider: Decider<State, Command, Event>,
  stream: string,
  command: WithoutNow<Command>,
  options?: ActOptions<State, Event, Reservation>,
) => Promise<CommandResult<State, Event>>;
