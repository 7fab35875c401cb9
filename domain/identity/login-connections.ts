import { z } from 'zod';
import { DomainError } from '../../kernel/errors';
import { event, instant } from '../../kernel/event';
import { release, reserve, type ReservationCommand } from '../common/reservations';
import { unreachable } from '../common/unreachable';
import type { User, UserEvent } from './users';

/**
 * Providers of logins; YouTube's is its company here. Source: spec extra-facts "Login providers".
 */
export const LOGIN_PROVIDERS = ['twitch', 'google', 'kick', 'trovo', 'discord'] as const;
export type LoginProvider = (typeof LOGIN_PROVIDERS)[number];

/** The platform that a provider's switches are named by. */
export const platformOf = (provider: LoginProvider): string => (provider === 'google' ? 'youtube' : provider);

/** An account at a login provider; `identity` is its keyed hash (services/identity/identities.ts), never its id. */
export interface Login {
  login_connection_id: string;
  provider: LoginProvider;
  identity: string;
}

/**
 * Kind of the reservation that makes an identity log in as one user: `provider:identity`, its owner is the user's id.
 */
export const LOGIN_IDENTITY = 'login_identity';
export const loginKey = ({ provider, identity }: Pick<Login, 'provider' | 'identity'>): string =>
  `${provider}:${identity}`;

const of = { user_id: z.uuid(), login_connection_id: z.uuid() };
const who = { provider: z.enum(LOGIN_PROVIDERS), identity: z.string() };

const by_connection = { by: ['login_connection_id'] } as const;
const audited = { audit: { ...by_connection, omit: ['identity'] } } as const;

/** Logins of a person. The provider's profile and tokens are rows (services/oauth/login-grants.ts). */
export const userLoginEvents = {
  'user:login_connected': event(
    {
      ...of,
      ...who,
      linked_with: z.uuid().nullable().describe('The login whose session linked it; null: unknown, or the first login'),
      connected_at: instant(),
    },
    { ...audited, version: 2, upcast: [(data) => ({ ...data, linked_with: null })] },
  ),
  'user:login_disconnected': event(
    {
      ...of,
      ...who,
      removed_with: z.uuid().nullable().describe('The login whose session removed it; null: unknown, or an operator'),
      session_id: z.uuid().nullable().describe('The session of the user that removed it'),
      disconnected_at: instant(),
    },
    { ...audited, version: 2, upcast: [(data) => ({ ...data, removed_with: null, session_id: null })] },
  ),
  /** The provider refuses the tokens that are kept: nothing is done with this login until its person was there. */
  'user:login_reconnect_required': event({ ...of, required_at: instant() }, { audit: by_connection }),
  'user:login_reconnect_cleared': event({ ...of, cleared_at: instant() }, { audit: by_connection }),
};
type UserLoginEvent = Extract<UserEvent, { type: keyof typeof userLoginEvents }>;

export type UserLoginCommand =
  | ({ type: 'user:connect_login'; linked_with?: string | null; now: string } & Login)
  | {
      type: 'user:disconnect_login';
      login_connection_id: string;
      /** Login and session of the user who removes it; absent for an operator. */
      removed_with?: string | null;
      session_id?: string | null;
      now: string;
    }
  | { type: 'user:require_login_reconnect'; login_connection_id: string; now: string }
  | { type: 'user:clear_login_reconnect'; login_connection_id: string; now: string };

/** A login of a user, by its id in their state. */
export interface UserLogin extends Login {
  reconnect_required: boolean;
  connected_at: string;
}
export type UserLogins = ReadonlyMap<string, UserLogin>;

/** The login of a user with this provider and identity. */
export const loginOf = (logins: UserLogins, login: Pick<Login, 'provider' | 'identity'>): UserLogin | null =>
  [...logins.values()].find((one) => loginKey(one) === loginKey(login)) ?? null;

/** Time after which a linked login may remove older ones. Source: spec rulings, "logins that were removed". */
const TRUSTED_AFTER_MS = 24 * 3_600_000;

/** A login that a thief linked must not lock out the user, who has a day to remove it. */
const isTooRecent = (remover: UserLogin, removed: UserLogin, now: string): boolean =>
  Date.parse(removed.connected_at) < Date.parse(remover.connected_at) &&
  Date.parse(now) - Date.parse(remover.connected_at) < TRUSTED_AFTER_MS;

export function decideUserLogin({ logins }: User, user_id: string, command: UserLoginCommand): UserLoginEvent[] {
  const { now } = command;
  const cleared = (login_connection_id: string) =>
    ({ type: 'user:login_reconnect_cleared', user_id, login_connection_id, cleared_at: now }) as const;
  if (command.type === 'user:connect_login') {
    const { type: _type, now: connected_at, linked_with = null, ...login } = command;
    const known = loginOf(logins, login);
    if (known === null) return [{ type: 'user:login_connected', user_id, ...login, linked_with, connected_at }];
    return known.reconnect_required ? [cleared(known.login_connection_id)] : [];
  }
  const { login_connection_id } = command;
  const known = logins.get(login_connection_id);
  switch (command.type) {
    case 'user:disconnect_login': {
      if (known === undefined) throw new DomainError('LOGIN_NOT_FOUND', { login_connection_id });
      // Nobody could log in as this person any more.
      if (logins.size === 1) throw new DomainError('LAST_LOGIN', { login_connection_id });
      const { removed_with = null, session_id = null } = command;
      const remover = removed_with === null ? undefined : logins.get(removed_with);
      if (remover && isTooRecent(remover, known, now)) throw new DomainError('RECENT_LOGIN', { login_connection_id });
      const { provider, identity } = known;
      const gone = { user_id, login_connection_id, provider, identity, removed_with, session_id, disconnected_at: now };
      return [{ type: 'user:login_disconnected', ...gone }];
    }
    case 'user:require_login_reconnect':
      if (known === undefined || known.reconnect_required) return [];
      return [{ type: 'user:login_reconnect_required', user_id, login_connection_id, required_at: now }];
    case 'user:clear_login_reconnect':
      if (known === undefined) throw new DomainError('LOGIN_NOT_FOUND', { login_connection_id });
      return known.reconnect_required ? [cleared(login_connection_id)] : [];
    default:
      return unreachable(command);
  }
}

export function evolveUserLogins(logins: UserLogins, event: UserLoginEvent): UserLogins {
  const { login_connection_id } = event;
  const next = new Map(logins);
  const known = logins.get(login_connection_id);
  switch (event.type) {
    case 'user:login_connected': {
      const { provider, identity, connected_at } = event;
      const login = { login_connection_id, provider, identity, connected_at, reconnect_required: false };
      return next.set(login_connection_id, login);
    }
    case 'user:login_disconnected':
      next.delete(login_connection_id);
      return next;
    case 'user:login_reconnect_required':
    case 'user:login_reconnect_cleared': {
      if (known === undefined) return logins;
      const reconnect_required = event.type === 'user:login_reconnect_required';
      return next.set(login_connection_id, { ...known, reconnect_required });
    }
    default:
      return unreachable(event);
  }
}

/** Reservations that these events make and release: an identity logs in as one user. */
export const loginReservations = (events: readonly UserEvent[]): ReservationCommand[] =>
  events.flatMap((event) => {
    if (event.type === 'user:login_connected') return [reserve(LOGIN_IDENTITY, loginKey(event), event.user_id)];
    if (event.type === 'user:login_disconnected') return [release(LOGIN_IDENTITY, loginKey(event), event.user_id)];
    return [];
  });
