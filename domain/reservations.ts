import { createHash } from 'node:crypto';
import type { Decider } from './decider';
import { DomainError } from './errors';
import { unreachable } from './unreachable';

/**
 * Uniqueness (a slug, a role name in an account, a provider identity) as a stream of its own, written in the same atomic append as what needs it:
 * the store's revision check is the unique index, on any engine (design §5). The owner is whoever holds the value.
 */
export type ReservationEvent =
  | { type: 'reservation:made'; kind: string; value: string; owner: string }
  | { type: 'reservation:released'; kind: string; value: string; owner: string };

export interface ReservationCommand {
  type: 'reserve' | 'release';
  /** What must be unique: `account_slug`, `role_name:<account id>`. */
  kind: string;
  /** Already normalised (case, blanks): two values are the same when they are equal here. Personal values come hashed. */
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

/** `reservation-<kind>-<value>`; a value that is long or holds other than plain characters goes in as its SHA-256. */
export function reservationStream(kind: string, value: string): string {
  const plain = /^[a-z0-9._:@-]{1,200}$/.test(value);
  return `reservation-${kind}-${plain ? value : `~${createHash('sha256').update(value).digest('hex')}`}`;
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
