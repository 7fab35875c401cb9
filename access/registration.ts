import { reservation, reservationStream, Taken } from '../domain/reservations';
import { LOGIN_IDENTITY, loginKey, loginOf, loginReservations, type Login } from '../domain/login-connections';
import { user, userStream } from '../domain/users';
import { DomainError } from '../kernel/errors';
import type { Act } from './act';
import type { RequestContext } from './caller';
import { newId } from './event-ids';
import { writeProfile, type Profile } from './profiles';
import type { Services } from './services';
import { load, statesOf } from './states';

export interface Registration {
  /** Absent: a new one, or the one that a call before has begun with. */
  user_id?: string;
  /** Who logs in as this user. */
  login?: Login;
  profile: Omit<Profile, 'user_id'>;
}

export interface Registered {
  user_id: string;
  /** Whether this call made the user, or the one that it repeats. */
  created: boolean;
  /** Of the login that was named, whichever call connected it. */
  login_connection_id: string | null;
}

type Needs = Pick<Services, 'db' | 'events'>;

/** Who logs in by this identity; null: nobody yet. */
export async function userOf({ events }: Pick<Needs, 'events'>, login: Pick<Login, 'provider' | 'identity'>) {
  const held = await load(events, reservation, reservationStream(LOGIN_IDENTITY, loginKey(login)));
  return held?.state.owner ?? null;
}

/**
 * Makes a user, with the identity that will log in, in one append. Asked again for the same identity, or under the same
 * id, it answers the user that is there; of several who ask at once one makes them.
 */
export async function registerUser(
  { act, context }: { act: Act; context: Pick<RequestContext, 'idempotency_seed'> },
  services: Needs,
  { user_id: wanted, login, profile }: Registration,
): Promise<Registered> {
  const there = async (user_id: string): Promise<Registered> => {
    const { state, seeded } = await statesOf(services.events).load(user, userStream(user_id));
    const created = context.idempotency_seed !== null && seeded.has(newId(context, `${userStream(user_id)}\n0`));
    return {
      user_id,
      created,
      login_connection_id: login ? (loginOf(state.logins, login)?.login_connection_id ?? null) : null,
    };
  };
  const found = login ? await userOf(services, login) : null;
  if (found !== null) return there(found);

  const exists = async (id: string) => (await load(services.events, user, userStream(id))) !== null;
  // A call that was cut off is taken up by the next one for the same identity, under the same id.
  const derived = newId({ idempotency_seed: login?.identity ?? context.idempotency_seed }, 'user');
  const user_id = wanted ?? ((await exists(derived)) ? newId({ idempotency_seed: null }, 'user') : derived);
  const known = await exists(user_id);
  // Before the event, so that no user is ever without, and never after it: an erased profile stays erased.
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
      // Another process gave the identity away between the two looks.
      const winner = (await userOf(services, login))!;
      if (!known && winner !== user_id) await services.db.query('delete from profiles where user_id = $1', [user_id]);
      return there(winner);
    }
    if (!(error instanceof DomainError && error.reason === 'USER_EXISTS')) throw error;
    if (login) await connectLogin(act, user_id, login);
    return { ...(await there(user_id)), created: false };
  }
}

/** Lets an identity log in as this user; nothing when it does. @throws Taken when it logs in as another */
export async function connectLogin(act: Act, user_id: string, login: Login): Promise<void> {
  const connect = { type: 'user:connect_login', ...login } as const;
  await act(user, userStream(user_id), connect, { reservations: loginReservations, step: 'connect' });
}
