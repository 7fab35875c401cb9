import { reservation, reservationStream, Taken } from '../../domain/common/reservations';
import {
  LOGIN_IDENTITY,
  loginKey,
  loginOf,
  loginReservations,
  type Login,
} from '../../domain/identity/login-connections';
import { user, userStream } from '../../domain/identity/users';
import { DomainError } from '../../kernel/errors';
import type { Act } from '../../app/write-path/act';
import type { RequestContext } from '../../access/authentication/caller';
import { newId } from '../../app/write-path/event-ids';
import { writeProfile, type Profile } from './profiles';
import type { Services } from '../../app/services';
import { load, aggregateCacheOf } from '../../app/write-path/aggregate-cache';

export interface Registration {
  /** Absent: a new id, or the one that an interrupted call began with. */
  user_id?: string;
  /** Login identity of this user. */
  login?: Login;
  profile: Omit<Profile, 'user_id'>;
}

export interface Registered {
  user_id: string;
  /** Whether this call, or the one that it repeats, created the user. */
  created: boolean;
  /** Id of the named login, whichever call connected it. */
  login_connection_id: string | null;
}

type Needs = Pick<Services, 'db' | 'events'>;
type Seeded = Pick<RequestContext, 'idempotency_seed' | 'seed_since'>;

/** Id of the user with this identity; null without one. */
export async function userOf({ events }: Pick<Needs, 'events'>, login: Pick<Login, 'provider' | 'identity'>) {
  const held = await load(events, reservation, reservationStream(LOGIN_IDENTITY, loginKey(login)));
  return held?.state.owner ?? null;
}

/**
 * Creates a user and reserves the login identity in one append. A repetition for the same identity or id returns the
 * existing user; of concurrent calls one creates it.
 */
export async function registerUser(
  { act, context }: { act: Act; context: Seeded },
  services: Needs,
  { user_id: wanted, login, profile }: Registration,
): Promise<Registered> {
  const there = async (user_id: string): Promise<Registered> => {
    const stream = userStream(user_id);
    const { state, seeded } = await aggregateCacheOf(services.events).load(user, stream);
    const first = () => seeded.revisionOf(services.events, stream, newId(context, `${stream}\n0`), context.seed_since);
    const created = context.idempotency_seed !== null && (await first()) !== undefined;
    return {
      user_id,
      created,
      login_connection_id: login ? (loginOf(state.logins, login)?.login_connection_id ?? null) : null,
    };
  };
  const found = login ? await userOf(services, login) : null;
  if (found !== null) return there(found);

  const exists = async (id: string) => (await load(services.events, user, userStream(id))) !== null;
  // An interrupted call is resumed by the next one for the same identity, under the same id.
  const derived = newId({ idempotency_seed: login?.identity ?? context.idempotency_seed }, 'user');
  const user_id = wanted ?? ((await exists(derived)) ? newId({ idempotency_seed: null }, 'user') : derived);
  const known = await exists(user_id);
  // Before the event, so that every user has a profile, and never after it, so that an erased profile stays erased.
  if (!known) await writeProfile(services.db, { user_id, ...profile });
  const named = login && { login };
  try {
    await act(
      user,
      userStream(user_id),
      { type: 'user:register', user_id, ...named },
      { reservations: loginReservations },
    );
    return { user_id, created: true, login_connection_id: login?.login_connection_id ?? null };
  } catch (error) {
    if (error instanceof Taken && login) {
      // Another process registered the identity between the two reads.
      const winner = (await userOf(services, login))!;
      if (!known && winner !== user_id) await services.db.query('delete from profiles where user_id = $1', [user_id]);
      return there(winner);
    }
    if (!(error instanceof DomainError && error.reason === 'USER_EXISTS')) throw error;
    if (login) await connectLogin(act, user_id, login, 'connect the registered');
    return { ...(await there(user_id)), created: false };
  }
}

/**
 * Connects an identity to the user; does nothing when it is connected. @throws Taken when it belongs to another user
 */
export async function connectLogin(
  act: Act,
  user_id: string,
  login: Login & { linked_with?: string | null },
  step = 'connect',
): Promise<void> {
  const connect = { type: 'user:connect_login', ...login } as const;
  await act(user, userStream(user_id), connect, { reservations: loginReservations, step });
}
