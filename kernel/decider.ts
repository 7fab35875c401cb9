/** Member of every domain event; the others are its data. */
export interface DomainEvent {
  type: string;
}

/**
 * An aggregate as two pure functions: no clock, no randomness, no I/O. Times and ids arrive inside the command.
 * `decide` throws a DomainError when a rule says no, and returns [] when there is nothing to change; `evolve` never
 * throws for a stored event.
 */
export interface Decider<State, Command, Event extends DomainEvent> {
  initial: State;
  /** True when all states are equal to `initial`: the stream is appended to without a read, at any revision. */
  stateless?: State extends null ? true : never;
  decide(state: State, command: Command): Event[];
  evolve(state: State, event: Event): State;
}

/** The state that these events lead to. */
export function fold<State, Event extends DomainEvent>(
  decider: Pick<Decider<State, never, Event>, 'initial' | 'evolve'>,
  events: readonly Event[],
): State {
  return events.reduce((state, event) => decider.evolve(state, event), decider.initial);
}
