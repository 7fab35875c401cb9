import { flagEnabled, KNOWN_FLAGS } from '../../domain/operators/feature-flags';
import {
  ACCOUNT_PERMISSIONS,
  ADMIN_PERMISSIONS,
  DEFAULT_ROLES,
  DEFAULT_TEAM_ROLES,
  expandGrants,
  isTeamPermission,
  TEAM_PERMISSIONS,
  USER_PERMISSIONS,
} from '../../domain/common/permissions';
import { SYSTEM_USER_ROLES } from '../../domain/operators/user-roles';

describe('registries', () => {
  test.each([
    ['account', ACCOUNT_PERMISSIONS, 123],
    ['admin', ADMIN_PERMISSIONS, 90],
    ['user', USER_PERMISSIONS, 10],
    ['team', TEAM_PERMISSIONS, 20],
  ])('%s: as many as documented, none twice, none malformed', (_name, registry, count) => {
    expect(registry).toHaveLength(count);
    expect(new Set(registry).size).toBe(count);
    for (const name of registry) expect(name).toMatch(/^[a-z-]+:[a-z_-]+$/);
  });

  test('the account registry has 30 resources', () => {
    expect(new Set(ACCOUNT_PERMISSIONS.map((name) => name.split(':')[0])).size).toBe(30);
  });
});

describe('seeded roles', () => {
  test('come in the documented order and size', () => {
    expect(DEFAULT_ROLES.map((role) => [role.slug, role.permissions.length])).toEqual([
      ['owner', 123],
      ['administrator', 119],
      ['moderator', 43],
      ['viewer', 9],
    ]);
  });

  test('hold registered permissions only, each role no more than the one before', () => {
    for (const [index, role] of DEFAULT_ROLES.entries()) {
      const wider = new Set(index === 0 ? ACCOUNT_PERMISSIONS : DEFAULT_ROLES[index - 1]!.permissions);
      expect(role.permissions.filter((name) => !wider.has(name))).toEqual([]);
    }
  });

  test('an administrator cannot dissolve, pay or be paid', () => {
    const administrator = DEFAULT_ROLES[1]!.permissions;
    const missing = ACCOUNT_PERMISSIONS.filter((name) => !administrator.includes(name));
    expect(missing.sort()).toEqual(['account:delete', 'extension-dev:payouts', 'plan:edit', 'plan:read']);
  });

  test('team roles', () => {
    const counts = DEFAULT_TEAM_ROLES.map(({ slug, permissions }) => [slug, permissions.length]);
    expect(counts).toEqual([
      ['team-owner', 20],
      ['team-admin', 17],
      ['team-member', 7],
    ]);
    expect(DEFAULT_TEAM_ROLES.flatMap(({ permissions }) => permissions).every(isTeamPermission)).toBe(true);
    expect(isTeamPermission('team-members:*')).toBe(false);
  });

  test('user roles', () => {
    expect(SYSTEM_USER_ROLES.map(({ slug, permissions }) => [slug, permissions.length])).toEqual([
      ['member', 10],
      ['restricted', 2],
      ['moderator', 15],
    ]);
  });
});

describe('grants of system keys', () => {
  test('a resource wildcard is every action of that resource', () => {
    expect(expandGrants(['events:*'])).toEqual(['events:read', 'events:create', 'events:userinfo']);
  });

  test.each(['*', '*:*', ':*', 'event:*', 'events'])('%s grants nothing', (grant) => {
    expect(expandGrants([grant])).toEqual([]);
  });
});

describe('feature flags', () => {
  const account = { global: undefined, override: undefined, for_account: true };

  test('are known once each', () => {
    expect(new Set(KNOWN_FLAGS.map((flag) => flag.key)).size).toBe(KNOWN_FLAGS.length);
  });

  test.each([
    ['feature:events', account, false],
    ['feature:events', { ...account, override: true }, true],
    ['feature:events', { ...account, override: true, global: false }, false],
    ['system:public_stats', account, true],
    ['system:public_stats', { ...account, override: false }, false],
    ['platform:kick:login', account, true],
    ['feature:events', { ...account, for_account: false }, true],
    ['feature:eventz', { ...account, override: true, global: true }, false],
  ])('%s under %j is %s', (key, layers, expected) => expect(flagEnabled(key, layers)).toBe(expected));
});
