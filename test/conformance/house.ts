import { mintBoundToken } from '../../access/authentication/tokens/bound-tokens';
import type { Caller } from '../../access/authentication/caller';
import { createMemberPermissions } from '../../access/authorization/memberships';
import { createLocalPresence } from '../../engines/presence/local';
import { SettingsSchema } from '../../kernel/settings/settings';
import { account_id, credentialHouse, type CredentialHouse } from '../support/credentials';
import { uuid } from '../support/identity';
import { ACCOUNT, caller, Client, familiesWith, realtimeNode, type RealtimeNode } from '../support/realtime';

export const EVENTS = `events:${ACCOUNT}`;
export const INSTALL = '0190a000-0000-7000-8000-0000000000aa';
export const nothing = { user_id: null, permissions: new Set<string>() };

export let world: CredentialHouse;
/** Its credentials are made up by the test. */
export let node: RealtimeNode;
/** Its credentials are real. */
export let real: RealtimeNode;
export const clients: Client[] = [];

/** Opens what all proofs share. */
export async function openHouse(): Promise<void> {
  world = await credentialHouse();
  const owned = async (id: string) => ({ account_id: ACCOUNT, bound: false, owned: id === INSTALL });
  // Kinds of gates that the specification has and none of its channels.
  const unused = { summary: 'Of this test.', carries: {}, flag: null };
  const families = [
    ...familiesWith({ 'ext-logs': owned }),
    { ...unused, pattern: 'test-authenticated:<id>', gate: { kind: 'authenticated' } as const },
    {
      ...unused,
      pattern: 'test-user-permission:<id>',
      gate: { kind: 'user_permission', permission: 'ideas:read' } as const,
    },
  ];
  const windows = { silence_ms: 30_000, stall_ms: 30_000, beat_ms: 100 };
  node = await realtimeNode(world.t, {
    windows,
    presence: createLocalPresence(),
    families,
    stream_snapshot: async (_platform, id) => (id === 'shown' ? { viewers: 7 } : null),
  });
  const resolver = world.resolver();
  real = await realtimeNode(world.t, {
    windows,
    resolve: resolver.resolve,
    revalidate: resolver.revalidate,
    permissions_on: createMemberPermissions({ db: world.t.db }).permissionsOn,
  });
}

/** After each row: nobody is connected, and no feature is off. */
export function clear(): void {
  for (const client of clients.splice(0)) client.end();
  node?.off.clear();
}

export async function closeHouse(): Promise<void> {
  await node?.stop();
  await real?.stop();
  await world?.close();
}

export async function open(
  token: string | null = 'good',
  on = node,
  headers: Record<string, string> = {},
): Promise<Client> {
  const client = await Client.open(on.url, token, { headers });
  clients.push(client);
  return client;
}
/** Somebody new of this make; answers their connection. */
export async function as(given: Partial<Caller>): Promise<Client> {
  const token = `t${node.callers.size}`;
  node.callers.set(token, caller({ credential_id: token, ...given }));
  return open(token);
}
export const anonymous = () => open(null);
export const may = (...permissions: string[]) => as({ permissions: new Set(permissions) });
export const verdict = async (client: Client, channel: string): Promise<string> => {
  const { type, code } = await client.subscribe(channel);
  return code ?? type;
};
export const nextEvent = (client: Client, from = 0) => client.next(({ data }) => data !== undefined, 'an event', from);
export const broadcastAs = (client: Client, channel: string, payload = '{"type":"x"}') =>
  client.ask({ type: 'broadcast', channel, payload }, 'error', 'event');

export const services = () => ({
  db: world.t.db,
  tokens: world.tokens,
  settings: SettingsSchema.parse({}),
  events: world.on.events,
});
export const bound = (
  kind: 'overlay' | 'shared_overlay' | 'extension' | 'widget',
  channel: string,
  expires_at?: number,
) =>
  mintBoundToken(world.t, {
    kind,
    account_id,
    resource_id: uuid(60),
    channel,
    expires_at: expires_at ?? (kind === 'shared_overlay' ? Date.now() + 600_000 : null),
  });
export const byHeader = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

/** A client that reads nothing any more after it has subscribed. */
export async function stalled(on: RealtimeNode, channel: string): Promise<Client> {
  const client = await open('good', on);
  await client.subscribe(channel);
  client.ws.pause();
  return client;
}
export const big = (count: number) => Array.from({ length: count }, (_, n) => ({ n, pad: 'x'.repeat(20_000) }));
