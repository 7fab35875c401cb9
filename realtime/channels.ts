import type { VENDORS } from '../domain/vendors';

/** What a channel's id names; the area that owns the resource tells whose it is. */
export type Resource = 'account' | 'overlay' | 'widget' | 'extension_install' | 'extension' | 'presence';

/** Who may subscribe. Kinds and meanings: spec doc3 §4.1, "Channels, gates and feature flags". */
export type Gate =
  | { kind: 'public' }
  /** Anybody, while the system flag is on; `FEATURE_DISABLED` when it is off. */
  | { kind: 'public_when_feature'; flag: string }
  | { kind: 'authenticated' }
  /** The permission on the account that the id names, or that owns the named resource. */
  | { kind: 'permission'; permission: string }
  /** Any credential of the account. */
  | { kind: 'account_scoped' }
  | { kind: 'user_permission'; permission: string }
  /** A token of one of these kinds, bound to exactly this resource. */
  | { kind: 'bound_token'; callers: readonly ('overlay' | 'shared_overlay' | 'widget')[] }
  | { kind: 'extension_owner' };

export interface ChannelFamily {
  prefix: string;
  /** What comes after `prefix:`. */
  id: RegExp;
  resource: Resource | null;
  gate: Gate;
  /** Checked against the account of the channel (`feature:*`) or of the installation (`system:*`). */
  flag: string | null;
  /** Families that clients may broadcast on, and the permission for it. */
  write_permission?: string;
  /** The `type` of the family's stored messages where it is not `event` (doc3 §6.3). */
  message_type?: string;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const KEY = /^[A-Za-z0-9._~-]{1,128}$/;
const can = (permission: string): Gate => ({ kind: 'permission', permission });
const MUSIC = 'spotify' satisfies (typeof VENDORS)[number];

/**
 * Every channel there is: the table of doc3 §4.1 as data. An area plugs in by resolving its resource, not by code here.
 */
export const CHANNELS: readonly ChannelFamily[] = [
  {
    prefix: 'overlay',
    id: KEY,
    resource: 'overlay',
    gate: { kind: 'bound_token', callers: ['overlay', 'shared_overlay'] },
    flag: 'feature:overlays',
  },
  {
    prefix: 'widget',
    id: KEY,
    resource: 'widget',
    gate: { kind: 'bound_token', callers: ['widget'] },
    flag: 'feature:widgets',
  },
  {
    prefix: 'events',
    id: UUID,
    resource: 'account',
    gate: can('events:read'),
    flag: 'feature:events',
    write_permission: 'events:create',
  },
  {
    prefix: MUSIC,
    id: UUID,
    resource: 'account',
    gate: can('spotify:read'),
    flag: 'feature:music',
    message_type: 'spotify:now-playing',
  },
  {
    prefix: 'chat',
    id: UUID,
    resource: 'account',
    gate: can('chat:read'),
    flag: 'feature:multichat',
    write_permission: 'chat:write',
    message_type: 'chat:message',
  },
  {
    prefix: 'automations',
    id: UUID,
    resource: 'account',
    gate: can('automations:read'),
    flag: 'feature:automation',
    write_permission: 'automations:execute',
    message_type: 'automation',
  },
  { prefix: 'history', id: UUID, resource: 'account', gate: can('history:read'), flag: 'feature:stream_history' },
  {
    prefix: 'ext-storage',
    id: UUID,
    resource: 'extension_install',
    gate: can('extension-store:read'),
    flag: 'feature:extensions',
  },
  {
    prefix: 'ext-install-logs',
    id: UUID,
    resource: 'account',
    gate: can('bot-modules:read'),
    flag: 'feature:bot_module_extensions',
  },
  { prefix: 'sounds', id: UUID, resource: 'account', gate: { kind: 'account_scoped' }, flag: 'feature:sounds' },
  {
    prefix: 'presence',
    id: /^[a-z-]{1,40}:[A-Za-z0-9:._~-]{1,140}$/,
    resource: 'presence',
    gate: { kind: 'account_scoped' },
    flag: null,
  },
  {
    prefix: 'ext-logs',
    id: UUID,
    resource: 'extension',
    gate: { kind: 'extension_owner' },
    flag: 'feature:extension_development',
  },
  {
    prefix: 'ideas',
    id: /^list$/,
    resource: null,
    gate: { kind: 'public_when_feature', flag: 'system:ideas_hub_public' },
    flag: 'system:ideas_hub',
  },
  {
    prefix: 'ideas',
    id: UUID,
    resource: null,
    gate: { kind: 'public_when_feature', flag: 'system:ideas_hub_public' },
    flag: 'system:ideas_hub',
  },
  {
    prefix: 'public-stats',
    id: /^(twitch|youtube|kick|trovo):[A-Za-z0-9._~-]{1,100}$/,
    resource: null,
    gate: { kind: 'public_when_feature', flag: 'system:public_stats' },
    flag: 'system:public_stats',
  },
  { prefix: 'login-assignments', id: KEY, resource: null, gate: { kind: 'public' }, flag: null },
];

/** Family prefix to the `type` of its stored messages; every other family sends `event`. */
export const SERVICE_MESSAGE_TYPES: Readonly<Record<string, string | undefined>> = Object.fromEntries(
  CHANNELS.filter((family) => family.message_type).map((family) => [family.prefix, family.message_type]),
);

/**
 * The family that a channel's name belongs to, and its id; null for a name that no family has (gate "Unknown": always
 * rejected).
 */
export function parseChannel(name: string): { family: ChannelFamily; id: string } | null {
  const colon = name.indexOf(':');
  if (colon <= 0) return null;
  const prefix = name.slice(0, colon);
  const id = name.slice(colon + 1);
  const family = CHANNELS.find((candidate) => candidate.prefix === prefix && candidate.id.test(id));
  return family ? { family, id } : null;
}
