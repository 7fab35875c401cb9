import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { revokeBoundTokens } from '../access/authentication/tokens/bound-tokens';
import { announceChannel, announceShop } from '../services/connections/connection-lookup';
import { handle } from '../app/write-path/command-handler';
import { load } from '../app/write-path/aggregate-cache';
import { actFor } from '../app/write-path/act';
import { eraseProfile } from '../services/identity/profiles';
import { endSessions } from '../services/identity/session-revocation';
import { apiKey, apiKeyStream } from '../domain/credentials/api-keys';
import { connectionReservations } from '../domain/connections/connection-reservations';
import { connections, connectionsStream } from '../domain/connections/connections';
import { serviceKey, serviceKeyStream } from '../domain/credentials/service-keys';
import { systemKey, systemKeyStream } from '../domain/credentials/system-keys';
import { popoutToken, popoutTokenStream } from '../domain/credentials/popout-tokens';
import { overlays, overlaysStream } from '../domain/studio/overlays';
import { widgetCount, widgetCountStream } from '../domain/studio/widget-counts';
import { widget, widgetStream } from '../domain/studio/widgets';
import type { Platform } from '../domain/common/vendors';
import type { Blobs } from '../engines/blobs/port';
import { setFeatures } from '../cli/admin/accounts';
import { setAdminRole } from '../cli/admin/users';
import { asOperator, nowText, OPERATOR, type AdminServices } from '../cli/admin/shared/operator';
import { type DemoData, readDemoData } from './data';
import { OVERLAY_FILE } from './overlay';
import { step } from './step';

type Needs = AdminServices & { blobs: Blobs };

/**
 * Removes all access of the demo: revokes the users' keys and the system key, ends their sessions, removes the admin
 * role, the features, the connections and the names, and deletes the files with secrets. Their streams stay. A
 * repetition completes an interrupted call. Returns whether there was demo data.
 */
export async function removeDemoData(services: Needs, data_dir: string): Promise<boolean> {
  const data = await readDemoData(services);
  for (const file of ['dev-credentials.json', 'dev-secrets.json', OVERLAY_FILE])
    rmSync(join(data_dir, file), { force: true });
  if (data === null) return false;
  const done = ['KEY_NOT_FOUND'];
  await step(services, {
    decider: systemKey,
    stream: systemKeyStream(data.system_key.key_id),
    command: { type: 'system_key:revoke', now: nowText() },
    done,
  });
  for (const key_id of await keysOf(services, data)) {
    const command = { type: 'api_key:revoke', now: nowText() } as const;
    await step(services, { decider: apiKey, stream: apiKeyStream(key_id), command, done });
  }
  for (const key_id of await idsOf(services, data, 'service_keys')) {
    const command = { type: 'service_key:revoke', now: nowText() } as const;
    await step(services, { decider: serviceKey, stream: serviceKeyStream(key_id), command, done });
  }
  for (const token_id of await idsOf(services, data, 'popout_tokens')) {
    const command = { type: 'popout_token:revoke', now: nowText() } as const;
    await step(services, { decider: popoutToken, stream: popoutTokenStream(token_id), command, done });
  }
  for (const { user_id, account_id } of [data.owner, data.other]) {
    await revokeBoundTokens(services, { account_id });
    await deletePages(services, account_id);
    await setAdminRole(services, user_id, 'super-admin', false);
    await endSessions(actFor(asOperator(OPERATOR), services), services, { user_id }, 'revoked');
    await services.db.query('insert into revocations (user_id) values ($1)', [user_id]);
    await setFeatures(services, account_id, await featuresToClear(services, account_id));
    await eraseProfile(services, user_id);
  }
  await disconnect(services, data);
  // Last, because it is the only record of the demo's data.
  await services.db.query(`delete from installation where name = 'demo'`);
  return true;
}

/**
 * Active keys of the demo accounts, whoever made them, and the one in the demo data even when the read model is behind.
 */
async function keysOf(services: Needs, data: DemoData): Promise<Set<string>> {
  return new Set([data.user_api_key.key_id, ...(await idsOf(services, data, 'api_keys'))]);
}

async function idsOf({ db }: Needs, { owner, other }: DemoData, table: 'api_keys' | 'service_keys' | 'popout_tokens') {
  const accounts = [owner.account_id, other.account_id];
  const rows = await db.query<{ id: string }>(`select id from ${table} where account_id = any($1)`, [accounts]);
  return rows.map(({ id }) => id);
}

/** Deletes the overlays and widgets of an account, whose tokens and links end with them. */
async function deletePages(services: Needs, account_id: string): Promise<void> {
  const stream = overlaysStream(account_id);
  const made = await load(services.events, overlays, stream);
  for (const overlay_id of Object.keys(made?.state.overlays ?? {})) {
    const command = { type: 'overlay:delete', overlay_id, now: nowText() } as const;
    await step(services, { decider: overlays, stream, command, done: ['OVERLAY_NOT_FOUND'] });
  }
  const counted = await load(services.events, widgetCount, widgetCountStream(account_id));
  for (const widget_id of Object.keys(counted?.state ?? {})) {
    const command = { type: 'widget:delete', now: nowText() } as const;
    await step(services, { decider: widget, stream: widgetStream(widget_id), command, done: ['WIDGET_NOT_FOUND'] });
  }
}

async function featuresToClear({ db }: Needs, account_id: string): Promise<Record<string, null>> {
  const rows = await db.query<{ flag: string }>('select flag from account_feature_overrides where account_id = $1', [
    account_id,
  ]);
  return Object.fromEntries(rows.map(({ flag }) => [flag, null]));
}

/** Disconnects the demo's own channels and shop, but not those that somebody connected instead. */
async function disconnect(services: Needs, { owner: { account_id }, channels, shop }: DemoData): Promise<void> {
  const stream = connectionsStream(account_id);
  const held = await load(services.events, connections, stream);
  for (const [platform, channel] of Object.entries(channels) as [Platform, DemoData['channels'][Platform]][]) {
    if (held?.state.channels.get(platform)?.connection_id !== channel.connection_id) continue;
    const command = { type: 'connection:disconnect_channel', account_id, platform, now: nowText() } as const;
    await step(services, { decider: connections, stream, command, done: ['CONNECTION_NOT_FOUND'] });
    await announceChannel(services.relay, platform, channel.platform_channel_id);
  }
  const { shop_domain, connection_id } = shop;
  if (held?.state.shops.get(shop_domain) === connection_id) {
    await handle(asOperator('demo-data'), services, {
      decider: connections,
      stream,
      command: { type: 'connection:disconnect_shop', account_id, shop_domain, now: nowText() },
      reservations: connectionReservations,
    });
  }
  await services.db.query('delete from connection_secrets where connection_id = $1', [connection_id]);
  await announceShop(services.relay, shop_domain);
}
