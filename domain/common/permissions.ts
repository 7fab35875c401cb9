/**
 * The permission registries and the roles that are seeded from them. Scopes never mix: a string of one registry grants
 * nothing in another, even where both spell it alike (ruling c03). Source: spec doc1 §5.10–5.12.
 */

/** Resource to its actions, separated by blanks. */
type Actions = Readonly<Record<string, string>>;

const registry = (resources: Actions): readonly string[] =>
  Object.freeze(
    Object.entries(resources).flatMap(([resource, actions]) =>
      actions.split(' ').map((action) => `${resource}:${action}`),
    ),
  );

/** The 123 permissions of members in an account. Source: spec doc1 §5.10 (`music:*` is `spotify:*`, ruling c79). */
export const ACCOUNT_PERMISSIONS: readonly string[] = registry({
  events: 'read create userinfo',
  overlays: 'read create edit delete access-read access-grant access-revoke',
  widgets: 'read create edit delete access-read access-grant access-revoke',
  'extension-data': 'read edit',
  spotify: 'read playback volume queue playlist device worker',
  chat: 'read write userinfo delete ban timeout notes raid poll prediction refresh_user',
  connections: 'read create edit delete',
  settings: 'read edit',
  automations: 'read create edit delete execute',
  members: 'read create edit delete',
  uploads: 'read create delete',
  rewards: 'read create edit delete',
  tokens: 'read create edit delete',
  apikeys: 'read create edit delete',
  account: 'read edit delete',
  plan: 'read edit',
  'login-assignments': 'read create delete',
  'extension-dev': 'read create edit delete publish analytics payouts',
  sounds: 'read create edit delete play',
  'bot-modules': 'read edit',
  copyright: 'read edit delete vote report recommend',
  obs: 'read edit delete',
  roles: 'read edit delete',
  'bot-commands': 'read create edit delete',
  'bot-connections': 'read create delete',
  'se-tokens': 'read create delete',
  'extension-store': 'read install uninstall configure review',
  history: 'read share export delete',
  'public-stats': 'read edit',
  'audit-log': 'read',
});

/**
 * Permissions of operators of the service; 90 strings, including those with the same name in the account scope (ruling
 * c06). Source: spec doc1 §5.11.
 */
export const ADMIN_PERMISSIONS: readonly string[] = registry({
  admin: 'access privacy-erase',
  'admin-roles': 'read create edit delete',
  'developer-verification': 'read edit',
  features: 'read edit',
  'feature-flags': 'read edit',
  users: 'read edit delete',
  accounts: 'read edit delete overrides-read overrides-edit',
  providers: 'read edit',
  platforms: 'read edit',
  'system-keys': 'read create delete',
  'oauth-clients': 'read create edit delete',
  'system-connections': 'read edit delete',
  billing: 'read edit',
  plans: 'read create edit delete',
  subscriptions: 'read edit',
  coupons: 'read create edit delete',
  'bot-control': 'read edit',
  'bot-commands': 'read create edit delete',
  'bot-connections': 'read create delete',
  'discord-guilds': 'read delete',
  support: 'read edit',
  audit: 'read',
  'audit-log': 'read',
  'csp-reports': 'read',
  'se-tokens': 'read delete',
  'extension-review': 'read edit',
  'developer-limits': 'read edit',
  ideas: 'moderate_read moderate_status moderate_edit moderate_delete moderate_comment',
  copyright: 'moderate read edit delete',
  'user-roles': 'read create edit delete',
  crawler: 'scope-read scope-edit watchlist-read watchlist-create watchlist-delete',
  obs: 'read edit',
  'bot-modules': 'read edit',
});

/** Permissions of users regardless of account; ten strings. Source: spec doc1 §5.12. */
export const USER_PERMISSIONS: readonly string[] = registry({
  ideas: 'read create edit delete vote comment_read comment_create comment_edit comment_delete comment_vote',
});

/** Permissions of members of a developer team; twenty strings. Source: spec doc1 §5.13. */
export const TEAM_PERMISSIONS: readonly string[] = registry({
  'team-extensions': 'create edit delete publish analytics',
  'team-versions': 'create edit',
  'team-secrets': 'read edit',
  'team-testers': 'read invite remove',
  'team-members': 'read invite edit remove',
  'team-settings': 'read edit',
  'team-payouts': 'read edit',
});

const accountPermissions: ReadonlySet<string> = new Set(ACCOUNT_PERMISSIONS);
const adminPermissions: ReadonlySet<string> = new Set(ADMIN_PERMISSIONS);

const teamPermissions: ReadonlySet<string> = new Set(TEAM_PERMISSIONS);
/** True for a string of the account registry; wildcards are none. */
export const isAccountPermission = (name: string): boolean => accountPermissions.has(name);
/** True for a string of the admin registry; wildcards are none. */
export const isAdminPermission = (name: string): boolean => adminPermissions.has(name);
/** True for a string of the team registry; wildcards are none. */
export const isTeamPermission = (name: string): boolean => teamPermissions.has(name);

/**
 * True for what a system key may hold: a string of either registry, or `resource:*` of a resource that one of them
 * knows.
 */
export function isSystemGrant(name: string): boolean {
  if (accountPermissions.has(name) || adminPermissions.has(name)) return true;
  return (
    name.endsWith(':*') &&
    [...ACCOUNT_PERMISSIONS, ...ADMIN_PERMISSIONS].some((one) => one.startsWith(name.slice(0, -1)))
  );
}

export interface SeededRole {
  slug: 'owner' | 'administrator' | 'moderator' | 'viewer';
  name: string;
  description: string;
  color: string;
  /** A system role can be neither changed nor deleted. */
  is_system: boolean;
  permissions: readonly string[];
}

const NOT_FOR_ADMINISTRATORS: ReadonlySet<string> = new Set([
  'account:delete',
  'plan:read',
  'plan:edit',
  'extension-dev:payouts',
]);

/**
 * The roles of every new account, in the order they are seeded. Source: spec doc1 §5.10, "Default roles", extra-facts
 * §5.
 */
export const DEFAULT_ROLES: readonly SeededRole[] = [
  {
    slug: 'owner',
    name: 'Owner',
    description: 'Owns the account and may do everything',
    color: '#f59e0b',
    is_system: true,
    permissions: ACCOUNT_PERMISSIONS,
  },
  {
    slug: 'administrator',
    name: 'Administrator',
    description: 'Runs the account: everything but dissolving it, its plan and payouts',
    color: '#ef4444',
    is_system: false,
    permissions: ACCOUNT_PERMISSIONS.filter((name) => !NOT_FOR_ADMINISTRATORS.has(name)),
  },
  {
    slug: 'moderator',
    name: 'Moderator',
    description: 'Moderates chat and runs the stream',
    color: '#22c55e',
    is_system: false,
    permissions: registry({
      events: 'read create userinfo',
      overlays: 'read',
      spotify: 'read playback queue playlist device',
      chat: 'read write userinfo delete ban timeout notes raid refresh_user poll prediction',
      connections: 'read',
      uploads: 'read',
      rewards: 'read',
      automations: 'read execute',
      members: 'read',
      roles: 'read',
      obs: 'read',
      copyright: 'vote report recommend',
      'bot-modules': 'read',
      'bot-connections': 'read',
      'bot-commands': 'read',
      'extension-store': 'read review',
      'extension-data': 'read',
      widgets: 'read',
      sounds: 'read play',
      history: 'read export',
      'public-stats': 'read',
    }),
  },
  {
    slug: 'viewer',
    name: 'Viewer',
    description: 'Looks on',
    color: '#6b7280',
    is_system: false,
    permissions: registry({
      events: 'read userinfo',
      overlays: 'read',
      'bot-commands': 'read',
      'extension-store': 'read review',
      'extension-data': 'read',
      widgets: 'read',
      sounds: 'read',
    }),
  },
];

/**
 * Permissions that user roles may list: the user scope, and five that the admin scope spells alike. Held by a user role
 * these stay in the user scope and never pass as an operator's. Source: spec doc1 §5.12, ruling c03.
 */
export const USER_ROLE_PERMISSIONS: readonly string[] = [
  ...USER_PERMISSIONS,
  ...ADMIN_PERMISSIONS.filter((name) => name.startsWith('ideas:moderate_')),
];
const userRolePermissions: ReadonlySet<string> = new Set(USER_ROLE_PERMISSIONS);
export const isUserRolePermission = (name: string): boolean => userRolePermissions.has(name);

const NOT_FOR_TEAM_ADMINS: ReadonlySet<string> = new Set([
  'team-settings:edit',
  'team-payouts:edit',
  'team-members:remove',
]);

/** The roles of every new team, in the order they are seeded. Source: spec doc1 §5.13. */
export const DEFAULT_TEAM_ROLES: readonly { slug: string; is_system: boolean; permissions: readonly string[] }[] = [
  { slug: 'team-owner', is_system: true, permissions: TEAM_PERMISSIONS },
  {
    slug: 'team-admin',
    is_system: false,
    permissions: TEAM_PERMISSIONS.filter((name) => !NOT_FOR_TEAM_ADMINS.has(name)),
  },
  {
    slug: 'team-member',
    is_system: false,
    permissions: registry({
      'team-extensions': 'create edit analytics',
      'team-versions': 'create',
      'team-members': 'read',
      'team-secrets': 'read',
      'team-settings': 'read',
    }),
  },
];

/**
 * The permissions of a registry that a list of grants gives. Only a system key's grants may hold `resource:*`, which is
 * every action of that resource; a bare `*` or `*:*` is the literal string and so matches nothing. Never contains a
 * wildcard. Source: spec doc1 §5.4.
 */
export function expandGrants(grants: Iterable<string>, registry: readonly string[] = ACCOUNT_PERMISSIONS): string[] {
  const held = new Set(grants);
  return registry.filter((name) => held.has(name) || held.has(`${name.slice(0, name.indexOf(':'))}:*`));
}
