import { fold, type Decider, type DomainEvent } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';

interface Outcome<Event> {
  then(...events: Event[]): void;
  thenNothing(): void;
  /** The DomainError's reason. */
  thenFails(reason: string): void;
}

/**
 * Given events, when a command, then events: `const given = decider(ideas); given([opened]).when(vote).then(voted)`.
 */
export function decider<State, Command, Event extends DomainEvent>(subject: Decider<State, Command, Event>) {
  return (history: readonly Event[]) => ({
    when(command: Command): Outcome<Event> {
      const state = fold<State, Event>(subject, history);
      const frozen = JSON.stringify(state);
      const decide = () => subject.decide(state, command);
      return {
        then(...events) {
          expect(decide()).toEqual(events);
          expect(JSON.stringify(state)).toBe(frozen);
        },
        thenNothing: () => expect(decide()).toEqual([]),
        thenFails(reason) {
          let failure: unknown;
          try {
            decide();
          } catch (error) {
            failure = error;
          }
          expect(failure).toBeInstanceOf(DomainError);
          expect((failure as DomainError).reason).toBe(reason);
        },
      };
    },
    /** The state that the history leads to. */
    state: (): State => fold<State, Event>(subject, history),
  });
}
