import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { ACCOUNT_PERMISSIONS, isAccountPermission } from '../common/permissions';
import { unreachable } from '../common/unreachable';

/** Public: runs where its users are and can keep no secret. Source: spec extra-facts §27. */
export const CLIENT_TYPES = ['public', 'confidential'] as const;
export type ClientType = (typeof CLIENT_TYPES)[number];

/** `password` may stand in a record and is never served. Source: spec rulings, "OAuth clients". */
export const GRANT_TYPES = ['authorization_code', 'refresh_token', 'client_credentials', 'password'] as const;
export type GrantType = (typeof GRANT_TYPES)[number];

const client_id = z.uuid();
/** Administrators' records, also where they name the account that a client acts on. */
const audit = { log: 'installation' } as const;
const edited = {
  name: z.string(),
  redirect_uris: z.array(z.string()),
  scopes: z.array(z.string()).describe('Account permissions'),
  grant_types: z.array(z.enum(GRANT_TYPES)),
  enabled: z.boolean(),
};

/**
 * A program of others that acts for users, or for the one account that it was registered for. Events carry the SHA-256
 * of its secret, never the secret. Source: spec extra-facts §27.
 */
export const OAUTH_CLIENT_EVENTS = events({
  'oauth_client:registered': event(
    {
      client_id,
      client_type: z.enum(CLIENT_TYPES),
      account_id: z.uuid().nullable().describe('What client_credentials act on; null: nothing'),
      ...edited,
      secret_hash: z.string().nullable().describe('Hex SHA-256 of the secret; a public client has none'),
      registered_at: instant(),
    },
    { audit },
  ),
  'oauth_client:changed': event({ client_id, ...edited, changed_at: instant() }, { audit }),
  'oauth_client:secret_rotated': event({ client_id, secret_hash: z.string(), rotated_at: instant() }, { audit }),
  'oauth_client:deleted': event({ client_id, deleted_at: instant() }, { audit }),
});
export type OauthClientEvent = EventOf<typeof OAUTH_CLIENT_EVENTS>;

const ofAccount = { client_id, account_id: z.uuid() };
const shown = { name: z.string(), scopes: z.array(z.string()), enabled: z.boolean() };
/** The account's own log names the client otherwise than that of the administrators. */
const in_its_log = { audit: { target: ['account_oauth_client', 'client_id'] } } as const;

/** Entries for the log of the account that a client acts on by itself: to the account it is a key. */
export const ACCOUNT_CLIENT_EVENTS = events({
  'oauth_client:account_granted': event({ ...ofAccount, ...shown, granted_at: instant() }, in_its_log),
  'oauth_client:account_changed': event({ ...ofAccount, ...shown, changed_at: instant() }, in_its_log),
  'oauth_client:account_released': event({ ...ofAccount, released_at: instant() }, in_its_log),
});
export type AccountClientEvent = EventOf<typeof ACCOUNT_CLIENT_EVENTS>;
type ClientEvent = OauthClientEvent | AccountClientEvent;

type Registered = Extract<OauthClientEvent, { type: 'oauth_client:registered' }>;
/** Editable members of a client. */
export type ClientEdit = Pick<Registered, keyof typeof edited>;

export type OauthClientCommand =
  | (Omit<Registered, 'type' | 'registered_at'> & { type: 'oauth_client:register'; now: string })
  | ({ type: 'oauth_client:change'; now: string } & Partial<ClientEdit>)
  | { type: 'oauth_client:rotate_secret'; secret_hash: string; now: string }
  | { type: 'oauth_client:delete'; now: string };

export type OauthClient = { status: 'none' | 'deleted' } | ({ status: 'active' } & Omit<Registered, 'type'>);

export const oauthClientStream = (client_id: string): string => `oauth-client-${client_id}`;

const LOOPBACK = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?(\/|\?|$)/;
/** Private-use scheme of a program: a reversed domain name (RFC 8252 §7.1), which excludes `javascript:`. */
const PRIVATE_SCHEME = /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:\/(?!\/)/;
const MAX_CHARACTERS = 2000;

/**
 * Whether a client may be sent here: `https:`, `http:` on the own machine, or a scheme of its own; no fragment, no
 * user, nothing that a browser reads otherwise than it is written. What is registered is compared as it stands.
 */
export function isRedirectUri(text: string): boolean {
  if (text.length > MAX_CHARACTERS || !/^[\x21-\x7e]+$/.test(text) || /[#\\*"<>^`{|}]/.test(text)) return false;
  if (PRIVATE_SCHEME.test(text)) return true;
  if (!text.startsWith('https://') && !LOOPBACK.test(text)) return false;
  if (!URL.canParse(text)) return false;
  const { username, password, hostname, host, protocol } = new URL(text);
  const authority = text.slice(protocol.length + 2).split(/[/?]/, 1)[0]!;
  // The parser's own reading of the host must be what is written: no encoded or international spelling of another one.
  const plain = authority === host || authority === `${host}:${protocol === 'https:' ? 443 : 80}`;
  return username === '' && password === '' && hostname !== '' && plain;
}

/** Permissions that create credentials or members which outlive the client. */
const NOT_FOR_CLIENTS: ReadonlySet<string> = new Set(['apikeys:create', 'tokens:create', 'members:create']);

/** @throws DomainError */
function held<Edit extends ClientEdit>(client: Edit & { client_type: ClientType; account_id: string | null }): Edit {
  const { redirect_uris, scopes, grant_types, client_type, account_id } = client;
  const odd = redirect_uris.find((uri) => !isRedirectUri(uri));
  if (odd !== undefined) throw new DomainError('REDIRECT_URI_REFUSED', { redirect_uri: odd });
  const unknown = scopes.find((scope) => !isAccountPermission(scope));
  if (unknown !== undefined) throw new DomainError('UNKNOWN_PERMISSION', { permission: unknown });
  const lasting = scopes.find((scope) => NOT_FOR_CLIENTS.has(scope));
  if (lasting !== undefined) throw new DomainError('SCOPE_NOT_FOR_CLIENTS', { permission: lasting });
  if (grant_types.includes('authorization_code') && redirect_uris.length === 0) {
    throw new DomainError('REDIRECT_URI_MISSING');
  }
  if (grant_types.includes('client_credentials') && (client_type === 'public' || account_id === null)) {
    throw new DomainError('NOT_ITS_OWN_MASTER');
  }
  return client;
}

/** Without repetitions; scopes and grant types in the order of their registries. */
const normal = (edit: ClientEdit): ClientEdit => ({
  name: edit.name,
  redirect_uris: [...new Set(edit.redirect_uris)],
  scopes: ACCOUNT_PERMISSIONS.filter((name) => edit.scopes.includes(name)),
  grant_types: GRANT_TYPES.filter((name) => edit.grant_types.includes(name)),
  enabled: edit.enabled,
});

/** The entry of a client for the log of the account that it acts on; null when it acts on none by itself. */
function forAccount(client: Omit<Registered, 'type'>): { account_id: string; shown: Shown } | null {
  const { account_id, name, scopes, enabled } = client;
  return account_id === null ? null : { account_id, shown: { name, scopes, enabled } };
}
type Shown = Pick<ClientEdit, keyof typeof shown>;

function decideClient(state: OauthClient, command: OauthClientCommand): ClientEvent[] {
  if (command.type === 'oauth_client:register') {
    if (state.status !== 'none') throw new DomainError('CLIENT_EXISTS');
    const { type: _type, now, ...client } = command;
    const registered = { ...client, ...normal(held(client)), registered_at: now };
    const own = forAccount(registered);
    const { client_id } = registered;
    return [
      { type: 'oauth_client:registered', ...registered },
      ...(own === null
        ? []
        : [
            {
              type: 'oauth_client:account_granted' as const,
              ...{ client_id, account_id: own.account_id, ...own.shown, granted_at: now },
            },
          ]),
    ];
  }
  if (state.status !== 'active') throw new DomainError('CLIENT_NOT_FOUND');
  const { client_id } = state;
  const own = forAccount(state);
  switch (command.type) {
    case 'oauth_client:change': {
      const { type: _type, now, ...wanted } = command;
      const edit = normal(held({ ...state, ...wanted }));
      if (JSON.stringify(edit) === JSON.stringify(normal(state))) return [];
      const then = forAccount({ ...state, ...edit });
      const told = JSON.stringify(then) !== JSON.stringify(own);
      return [
        { type: 'oauth_client:changed', client_id, ...edit, changed_at: now },
        ...(then !== null && told
          ? [
              {
                type: 'oauth_client:account_changed' as const,
                ...{ client_id, account_id: then.account_id, ...then.shown, changed_at: now },
              },
            ]
          : []),
      ];
    }
    case 'oauth_client:rotate_secret': {
      if (state.client_type === 'public') throw new DomainError('NO_SECRET');
      const { secret_hash, now } = command;
      return [{ type: 'oauth_client:secret_rotated', client_id, secret_hash, rotated_at: now }];
    }
    case 'oauth_client:delete':
      return [
        { type: 'oauth_client:deleted', client_id, deleted_at: command.now },
        ...(own === null
          ? []
          : [
              {
                type: 'oauth_client:account_released' as const,
                ...{ client_id, account_id: own.account_id, released_at: command.now },
              },
            ]),
      ];
    default:
      return unreachable(command);
  }
}

function evolveClient(state: OauthClient, event: ClientEvent): OauthClient {
  switch (event.type) {
    case 'oauth_client:registered': {
      const { type: _type, ...client } = event;
      return { status: 'active', ...client };
    }
    case 'oauth_client:changed': {
      if (state.status !== 'active') return state;
      const { type: _type, changed_at: _at, ...edit } = event;
      return { ...state, ...edit };
    }
    case 'oauth_client:secret_rotated':
      return state.status === 'active' ? { ...state, secret_hash: event.secret_hash } : state;
    case 'oauth_client:deleted':
      return { status: 'deleted' };
    case 'oauth_client:account_granted':
    case 'oauth_client:account_changed':
    case 'oauth_client:account_released':
      return state;
    default:
      return unreachable(event);
  }
}

export const oauthClient: Decider<OauthClient, OauthClientCommand, ClientEvent> = {
  initial: { status: 'none' },
  decide: decideClient,
  evolve: evolveClient,
};
