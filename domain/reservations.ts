import { z } from 'zod';
import { event, events, type EventOf } from '../kernel/event';
import type { Decider } from '../kernel/decider';
import { DomainError } from '../kernel/errors';
import { unreachable } from './unreachable';

const taken = { kind: z.string(), value: z.string(), owner: z.string() };

/**
 * Uniqueness (a slug, a role name in an account, a provider identity) as a stream of its own, written in the same
 * atomic append as what needs it: the store's revision check is the unique index, on any engine (design §5). The owner
 * is whoever holds the value.
 */
export const RESERVATION_EVENTS = events({
  'reservation:made': event(taken),
  'reservation:released': event(taken),
});
export type ReservationEvent = EventOf<typeof RESERVATION_EVENTS>;

export interface ReservationCommand {
  type: 'reserve' | 'release';
  /** What must be unique: `account_slug`, `role_name:<account id>`. */
  kind: string;
  /**
   * Already normalised (case, blanks): two values are the same when they are equal here. Personal values come hashed.
   */
  value: string;
  owner: string;
}

export interface Reservation {
  /** Null when the value is free. */
  owner: string | null;
}

/** Someone else holds the value; `details` are `{kind, value}`. */
export class Taken extends DomainError {
  constructor(
    readonly kind: string,
    readonly value: string,
  ) {
    super('TAKEN', { kind, value });
  }
}

/** Characters that no stream name may hold, and the one that escapes them. */
const ESCAPED = /[%\p{Cc}\p{Cs}]/gu;
/** Longest value in characters; with its kind it stays within a stream name's 500. */
const LONGEST = 400;

/**
 * `reservation-<kind>-<value>`, control characters and lone surrogates escaped.
 * @throws DomainError `VALUE_TOO_LONG`
 */
export function reservationStream(kind: string, value: string): string {
  const escaped = value.replace(ESCAPED, (character) => `%${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
  if (escaped.length > LONGEST) throw new DomainError('VALUE_TOO_LONG', { kind });
  return `reservation-${kind}-${escaped}`;
}

export const reserve = (kind: string, value: string, owner: string): ReservationCommand => ({
  type: 'reserve',
  kind,
  value,
  owner,
});
export const release = (kind: string, value: string, owner: string): ReservationCommand => ({
  type: 'release',
  kind,
  value,
  owner,
});

/**
 * What several commands of one request on one value come to. Values are given back before they are taken: who renames
 * something to an equal value, in whatever order it says so, holds it throughout. Nothing when the owner stays the
 * same.
 * @throws Taken
 */
export function decideTogether(
  state: Reservation,
  commands: readonly ReservationCommand[],
): readonly ReservationEvent[] {
  const releases = commands.filter(({ type }) => type === 'release');
  const reserves = commands.filter(({ type }) => type === 'reserve');
  let current = state;
  const events: ReservationEvent[] = [];
  for (const command of [...releases, ...reserves]) {
    const decided = reservation.decide(current, command);
    events.push(...decided);
    current = decided.reduce((held, event) => reservation.evolve(held, event), current);
  }
  return current.owner === state.owner ? [] : events;
}

export const reservation: Decider<Reservation, ReservationCommand, ReservationEvent> = {
  initial: { owner: null },
  decide(state, { type, kind, value, owner }) {
    switch (type) {
      case 'reserve':
        if (state.owner === owner) return [];
        if (state.owner !== null) throw new Taken(kind, value);
        return [{ type: 'reservation:made', kind, value, owner }];
      case 'release':
        // A value that another owner holds by now is not this one's to give back.
        return state.owner === owner ? [{ type: 'reservation:released', kind, value, owner }] : [];
      default:
        return unreachable(type);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'reservation:made':
        return { owner: event.owner };
      case 'reservation:released':
        return { owner: null };
      default:
        return state;
    }
  },
};
