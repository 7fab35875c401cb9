import { randomUUID } from 'node:crypto';
import type { CallerKind } from '../../access/authentication/caller';
import { OPERATIONS } from '../../bin/areas';
import { ACCOUNT_PERMISSIONS, ADMIN_PERMISSIONS } from '../../domain/common/permissions';
import type { Asking } from './asking';
import type { SharedServer } from './shared-server';

/** Somebody who asks, and what the specification judges them by. */
export interface Asker {
  kind: CallerKind;
  account_id: string;
  headers: Record<string, string>;
  account: ReadonlySet<string>;
  admin: ReadonlySet<string>;
  user: ReadonlySet<string>;
  /** False: of an account that has no feature. */
  features: boolean;
}

/**
 * Somebody of each of the ten contexts, on one account: of those that can hold permissions one with all of them and one
 * with few; and the owner of an account without features.
 */
export async function everyAsker(server: SharedServer, ask: Asking): Promise<Record<string, Asker>> {
  const owner = await server.account();
  const { account_id } = owner;
  const askers: Record<string, Asker> = {};
  const bare = await server.account();
  await server.operator.setAdminRole(owner.user_id, 'super-admin', true);
  const viewer = await server.member(account_id, 'viewer');
  const flags = [
    ...new Set(OPERATIONS.flatMap(({ guard }) => guard.flatMap((one) => (one.kind === 'feature' ? [one.flag] : [])))),
  ];
  await server.operator.setFeatures(bare.account_id, Object.fromEntries(flags.map((flag) => [flag, false])));

  const add = async (name: string, kind: CallerKind, token: string, of = account_id) => {
    const headers: Record<string, string> = token === '' ? {} : { authorization: `Bearer ${token}` };
    if (kind === 'system_key') headers['x-lumio-account'] = account_id;
    const { status, text } = await ask.send(headers, 'GET', '/v1/tokens/me');
    const rights = status === 200 ? JSON.parse(text).data : {};
    askers[name] = {
      kind,
      account_id: of,
      headers,
      account: new Set(rights.permissions),
      admin: new Set(rights.admin_permissions),
      user: new Set(rights.user_permissions),
      features: of === account_id,
    };
  };
  const made = async (path: string, permissions: readonly string[], member: 'key' | 'token') => {
    const { json } = await owner.door.rest('POST', path, { body: { label: 'walk', permissions } });
    return json.data[member] as string;
  };
  await add('nobody', 'anonymous', '');
  await add('an owner who administers', 'jwt', owner.access_token);
  await add('a viewer', 'jwt', viewer.access_token);
  await add('an owner without features', 'jwt', bare.access_token, bare.account_id);
  for (const [name, permissions] of [
    ['every right', ACCOUNT_PERMISSIONS],
    ['one right', ['events:read']],
  ] as const) {
    await add(`a user's key with ${name}`, 'user_api_key', await made('/v1/api-keys', permissions, 'key'));
    await add(`a service key with ${name}`, 'service_key', await made('/v1/service-keys', permissions, 'key'));
    await add(`a popout token with ${name}`, 'popout', await made('/v1/tokens', permissions, 'token'));
  }
  const every = [...new Set([...ACCOUNT_PERMISSIONS, ...ADMIN_PERMISSIONS])];
  for (const permissions of [every, ['events:read']]) {
    const { key } = await server.operator.createSystemKey({ label: 'walk', permissions });
    await add(`a system key with ${permissions.length} rights`, 'system_key', key);
  }
  const expires_at = new Date(Date.now() + 600_000).toISOString();
  for (const kind of ['overlay', 'shared_overlay', 'extension', 'widget'] as const) {
    const bound = { kind, account_id, resource_id: randomUUID(), channel: `overlay:${randomUUID()}`, expires_at };
    await add(`a token of kind ${kind}`, kind, (await server.operator.createBoundToken(bound)).token);
  }
  return askers;
}
