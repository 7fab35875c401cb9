import { z } from 'zod';
import { event, events, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { unreachable } from './unreachable';

const taken = { kind: z.string(), value: z.string(), owner: z.string() };

/**
 * Uniqueness (a slug, a role name in an account, a provider identity) as a stream of its own, written in the same
 * atomic append as what needs it: the store's revision check is the unique index, on any engine (design §5). The owner
 * is whoever holds the value.
 */
export const RESERVATION_EVENTS = events({
  // Not audited: the event that needs the value is, in the same append.
  'reservation:made': event(taken, { audit: null }),
  'reservation:released': event(taken, { audit: null }),
});
export type ReservationEvent = EventOf<typeof RESERVATION_EVENTS>;

/** Kind of a unique value: `account_slug`, `role_name:<account id>`. */
type Kind = string;
/**
 * Already normalised (case, blanks): two values are the same when they are equal here. Personal values come hashed.
 */
type Value = string;
type Owner = string;

export type ReservationCommand =
  | { type: 'reserve' | 'release'; kind: Kind; value: Value; owner: Owner }
  /** The owner gives one value back and takes another. */
  | { type: 'rename'; kind: Kind; owner: Owner; from: Value; to: Value }
  /** The value passes from one owner to another. */
  | { type: 'transfer'; kind: Kind; value: Value; from: Owner; to: Owner };

/** Net change of a reserved value over all commands of a request. */
export interface ReservationChange {
  kind: Kind;
  value: Value;
  /** Owners that release it, if they hold it. */
  gives: readonly Owner[];
  /** Owners that claim it, in this order. */
  takes: readonly Owner[];
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

export const reserve = (kind: Kind, value: Value, owner: Owner): ReservationCommand => ({
  type: 'reserve',
  kind,
  value,
  owner,
});
export const release = (kind: Kind, value: Value, owner: Owner): ReservationCommand => ({
  type: 'release',
  kind,
  value,
  owner,
});
export const rename = (kind: Kind, owner: Owner, from: Value, to: Value): ReservationCommand => ({
  type: 'rename',
  kind,
  owner,
  from,
  to,
});
export const transfer = (kind: Kind, value: Value, from: Owner, to: Owner): ReservationCommand => ({
  type: 'transfer',
  kind,
  value,
  from,
  to,
});

/**
 * The commands of one request by the stream that each value has: a stream is written once in an append.
 * @throws DomainError `VALUE_TOO_LONG`
 */
export function changesByStream(commands: readonly ReservationCommand[]): Map<string, ReservationChange> {
  const changes = new Map<string, ReservationChange>();
  const add = (kind: Kind, value: Value, more: { gives?: Owner; takes?: Owner }) => {
    const stream = reservationStream(kind, value);
    const { gives, takes } = changes.get(stream) ?? { gives: [], takes: [] };
    changes.set(stream, {
      kind,
      value,
      gives: more.gives === undefined ? gives : [...gives, more.gives],
      takes: more.takes === undefined ? takes : [...takes, more.takes],
    });
  };
  for (const command of commands) {
    const { type, kind } = command;
    switch (type) {
      case 'reserve':
        add(kind, command.value, { takes: command.owner });
        break;
      case 'release':
        add(kind, command.value, { gives: command.owner });
        break;
      case 'rename':
        add(kind, command.from, { gives: command.owner });
        add(kind, command.to, { takes: command.owner });
        break;
      case 'transfer':
        add(kind, command.value, { gives: command.from, takes: command.to });
        break;
      default:
        unreachable(type);
    }
  }
  return changes;
}

/**
 * A value is given back before it is taken: who renames something to an equal value holds it throughout, and two may
 * change their values with each other in one request. A value that another owner holds by now is not given back.
 */
export const reservation: Decider<Reservation, ReservationChange, ReservationEvent> = {
  initial: { owner: null },
  decide({ owner }, { kind, value, gives, takes }) {
    let next = owner !== null && gives.includes(owner) ? null : owner;
    for (const taker of takes) {
      if (next !== null && next !== taker) throw new Taken(kind, value);
      next = taker;
    }
    if (next === owner) return [];
    const events: ReservationEvent[] = [];
    if (owner !== null) events.push({ type: 'reservation:released', kind, value, owner });
    if (next !== null) events.push({ type: 'reservation:made', kind, value, owner: next });
    return events;
  },
  evolve(_state, event) {
    return { owner: event.type === 'reservation:made' ? event.owner : null };
  },
};
