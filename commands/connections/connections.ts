import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Act } from '../../app/write-path/act';
import { writeChannelName } from '../../services/connections/channel-names';
import { writeHandle } from '../../services/history/channel-handles';
import {
  authorizeConnect,
  withVendorErrors,
  connectingErrors,
  findExistingConnection,
  requireIntegrationQuota,
} from '../../services/connections/connecting';
import { dropGrant, writeGrant } from '../../services/connections/connection-grants';
import { announceChannel } from '../../services/connections/connection-lookup';
import { AccountApp, appFor, appInput } from '../../services/connections/credential-modes';
import {
  clearReconnect,
  CONNECTION_NOT_FOUND,
  disconnect,
  ConnectionResult,
} from '../../services/connections/disconnecting';
import { beginConnection, return_to, StartedConnection } from '../../services/connections/starting';
import { dropApp, keptApp, writeApp } from '../../services/connections/oauth-apps';
import { endFormerApp, readFormerApp } from '../../services/connections/former-app';
import { readState, redeemState, type RedeemedState } from '../../services/oauth/oauth-states';
import {
  command,
  conflict,
  del,
  feature,
  firstParty,
  notFound,
  permission,
  post,
  put,
  type Refuse,
} from '../../app/operation';
import { endRefusedGrant } from '../../services/connections/refused-grants';
import { callbackOf, parseReturnUrl } from '../../services/oauth/return-url';
import type { Services } from '../../app/services';
import { accountApps, accountAppsStream } from '../../domain/connections/account-apps';
import { connectionReservations } from '../../domain/connections/connection-reservations';
import { connections, connectionsStream, type Connections } from '../../domain/connections/connections';
import {
  APP_PLATFORMS,
  systemConnection,
  systemConnectionStream,
  type AppPlatform,
} from '../../domain/operators/system-connections';
import type { BotPlatform, ChannelPlatform } from '../../domain/common/vendors';
import { DomainError } from '../../kernel/errors';

const platform = z.enum(APP_PLATFORMS);
const kind = z.enum(['channel', 'bot', 'system_bot']).meta({ id: 'OAuthConnectionKind' });

/** Source: spec rulings, "starting a connection". */
export const startConnection = command({
  name: 'startConnection',
  summary: 'Begins to connect a channel or bot by logging in at its platform',
  rest: post('/v1/connections/oauth/{platform}/start', { envelope: 'bare' }),
  guard: [firstParty],
  input: z.object({ platform, kind, return_to }),
  output: StartedConnection,
  errors: connectingErrors,
  run: ({ input, caller, refuse }, services) => beginConnection(services, { caller, ...input }, refuse),
});

/** Source: spec doc2 §4.2 "Connections", rulings "starting a connection". */
export const exchangeConnection = command({
  name: 'exchangeConnection',
  summary: "Connects what was begun, with the code that the platform's login gave",
  rest: post('/v1/connections/oauth/{platform}/exchange', { envelope: 'bare' }),
  guard: [firstParty],
  input: z.object({
    platform,
    code: z.string().min(1).max(4096),
    state: z.string().min(1).max(200),
    return_to: return_to.nullish().describe('Where it is given it must be the one that the login was begun with'),
  }),
  output: z
    .object({
      kind,
      platform: z.string(),
      connection_id: z.uuid(),
      return_to: z.string(),
      reconnected: z.boolean().describe('It was connected before, and has new tokens now'),
    })
    .meta({ id: 'ExchangedConnection' }),
  errors: {
    ...connectingErrors,
    TAKEN: conflict('Another account has connected this server'),
    CONNECTION_NOT_FOUND: conflict('It was disconnected meanwhile: begin again'),
  },
  async run({ input, caller, context, act, newId, refuse }, services) {
    const { platform, code, state } = input;
    const who = { state, user_id: caller.user_id, platform };
    const begun = await readState(services.db, who);
    if (begun === null) throw refuse('UNKNOWN_STATE');
    const { kind } = begun;
    const { account_id, vendor } = await authorizeConnect(services, { caller, platform, kind }, refuse);
    // The login is bound to the account it was begun for, even when another account is active now.
    if (account_id !== begun.account_id) throw refuse('UNKNOWN_STATE');
    const back = parseReturnUrl(services.settings, begun.return_to);
    if (back === null || (input.return_to && parseReturnUrl(services.settings, input.return_to)?.href !== back.href))
      throw refuse('UNKNOWN_RETURN');
    const full = await requireIntegrationQuota(services, begun, refuse);
    const app = await appFor(services, { platform, kind: kind === 'channel' ? 'channel' : 'bot', account_id });
    if (app?.client_id !== begun.client_id) throw refuse('UNKNOWN_STATE');
    const redeemed = await redeemState(services, { ...who, request: context.idempotency_seed ?? randomUUID() });
    if (redeemed === null) throw refuse('UNKNOWN_STATE');

    const known = await findExistingConnection(services, begun);
    let of = await ofGrant(services, redeemed);
    if (of === null) {
      const asked = { app, kind, redirect_uri: callbackOf(back, platform), code, verifier: redeemed.verifier };
      const { grant, owner } = await withVendorErrors(platform, vendor.exchange(asked), refuse);
      const { platform_user_id } = owner;
      if (known !== null && known.platform_user_id !== platform_user_id)
        throw refuse('PLATFORM_ALREADY_CONNECTED', { platform });
      const connection_id = known?.connection_id ?? newId('connection');
      const replaced = { connection_id, client_id: app.client_id };
      const former = known === null ? null : await readFormerApp(services, vendor, replaced);
      const place = { connection_id, account_id, kind, platform, app: app.app, client_id: app.client_id };
      await services.db.transaction(async (db) => {
        await writeGrant({ ...services, db }, { place, owner, grant, asked: vendor.scopes(kind) });
        await db.query('update oauth_states set connection_id = $2 where state_hash = $1', [
          redeemed.state_hash,
          connection_id,
        ]);
      });
      if (former !== null) await endFormerApp(services, vendor, former);
      if (kind === 'channel' && owner.display_name !== null) {
        const channel = { platform: platform as ChannelPlatform, platform_channel_id: platform_user_id };
        await writeChannelName(services, channel, owner.display_name);
      }
      if (kind === 'channel' && owner.username !== null) {
        const channel = { platform: platform as ChannelPlatform, platform_channel_id: platform_user_id };
        await writeHandle(services, channel, owner.username);
      }
      of = { connection_id, platform_user_id };
    }
    const { connection_id: connected_id } = of;
    const fresh = await connect(act, { ...begun, ...of, known }, full).catch(async (error: unknown) => {
      if (error instanceof DomainError) await endRefusedGrant(services, { vendor, app, connection_id: connected_id });
      throw error;
    });
    if (kind === 'channel') await announceChannel(services.relay, platform as ChannelPlatform, of.platform_user_id);
    // A concurrent request may have connected the same channel.
    const { connection_id } = (await findExistingConnection(services, begun)) ?? of;
    if (connection_id !== of.connection_id) await dropGrant(services.db, of.connection_id);
    return { kind, platform, connection_id, return_to: back.href, reconnected: !fresh };
  },
});

/** The grant that an earlier attempt of this request has stored; null at the first. */
async function ofGrant({ db }: Pick<Services, 'db'>, { connection_id }: RedeemedState) {
  if (connection_id === null) return null;
  const [row] = await db.query<{ platform_user_id: string }>(
    'select platform_user_id from connection_grants where connection_id = $1',
    [connection_id],
    'connection-grant-owner',
  );
  return row === undefined ? null : { connection_id, platform_user_id: row.platform_user_id };
}

type Connecting = Pick<RedeemedState, 'account_id' | 'kind'> & {
  platform: string;
  connection_id: string;
  platform_user_id: string;
  known: { connection_id: string } | null;
};

/** Appends the connection; returns true when the platform was not connected before. */
async function connect(
  act: Act,
  { account_id, kind, platform, connection_id, platform_user_id, known }: Connecting,
  full: (state: Connections) => ReturnType<Refuse<typeof connectingErrors>> | false,
): Promise<boolean> {
  const step = `connect ${connection_id}`;
  const isNew = ({ events }: { events: readonly { type: string }[] }) =>
    events.some(({ type }) => type.endsWith('_connected'));
  if (account_id === null) {
    const of = { platform: platform as AppPlatform, connection_id, platform_user_id };
    const stream = systemConnectionStream(of.platform);
    return isNew(await act(systemConnection, stream, { type: 'system_connection:connect_bot', ...of }, { step }));
  }
  const stream = connectionsStream(account_id);
  const of = { account_id, connection_id };
  // An earlier attempt of this request may have connected it: the step finds its events in the stream.
  if (known?.connection_id === connection_id)
    return isNew(await act(connections, stream, { type: 'connection:renew', ...of }, { step }));
  if (kind === 'channel') {
    const channel = { ...of, platform: platform as ChannelPlatform, platform_channel_id: platform_user_id };
    return isNew(
      await act(connections, stream, { type: 'connection:connect_channel', ...channel }, { step, precondition: full }),
    );
  }
  const bot = { ...of, platform: platform as BotPlatform, platform_user_id };
  const reservations = connectionReservations;
  return isNew(await act(connections, stream, { type: 'connection:connect_bot', ...bot }, { step, reservations }));
}

/** Disconnects a channel; a reactor then revokes its tokens at the platform. Source: spec doc1 §5.10. */
export const disconnectChannelConnection = command({
  name: 'disconnectChannelConnection',
  summary: 'Takes a channel off the active account',
  rest: del('/v1/channel-connections/{id}'),
  guard: [feature('feature:connections'), permission('connections:delete')],
  input: z.object({ id: z.uuid() }),
  output: ConnectionResult,
  errors: CONNECTION_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, act }, services) {
    await disconnect(act, services, { account_id, connection_id: id, kind: 'channel' });
    return { success: true };
  },
});

/** Source: spec doc2 §3, §4.1. */
export const clearChannelConnectionReconnectFlag = command({
  name: 'clearChannelConnectionReconnectFlag',
  summary: 'Clears the reconnect prompt of a channel: its tokens are tried again',
  rest: put('/v1/channel-connections/{id}/reconnect-flag', { envelope: 'bare' }),
  guard: [feature('feature:connections'), permission('connections:create')],
  input: z.object({ id: z.uuid() }),
  output: ConnectionResult,
  errors: CONNECTION_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, act }, services) {
    await clearReconnect(act, services, { account_id, connection_id: id, kind: 'channel' });
    return { success: true };
  },
});

/** Stores the account's own app; its secret is never shown again. Source: spec extra-facts §13. */
export const setConnectionCredentials = command({
  name: 'setConnectionCredentials',
  summary: 'Keeps the app that the account has registered at a platform, to connect with it',
  rest: put('/v1/connections/credentials/{platform}'),
  graphql: { argument: 'input', flat_arguments: ['platform'] },
  guard: [feature('feature:connections'), permission('connections:create')],
  input: z.object({ platform, ...appInput }),
  output: AccountApp,
  async run({ input, caller: { account_id }, context, act }, services) {
    const { platform, client_id, client_secret } = input;
    // Before the event, so that an announced app is usable.
    await writeApp(services, { owner: account_id, platform, app: { client_id, client_secret } });
    await act(accountApps, accountAppsStream(account_id), { type: 'account_app:set', account_id, platform, client_id });
    return { platform, client_id, set_at: new Date(context.now).toISOString() };
  },
});

/**
 * Deletes the account's own app. Connections made with it work until their tokens end. Source: spec extra-facts §13.
 */
export const deleteConnectionCredentials = command({
  name: 'deleteConnectionCredentials',
  summary: "Forgets the account's own app at a platform: what was connected with it must be connected again in time",
  rest: del('/v1/connections/credentials/{platform}'),
  guard: [feature('feature:connections'), permission('connections:delete')],
  input: z.object({ platform }),
  output: ConnectionResult,
  errors: { APP_NOT_FOUND: notFound('App credentials not found') },
  async run({ input: { platform }, caller: { account_id }, act }, services) {
    const kept = await keptApp(services.db, account_id, platform);
    const remove = { type: 'account_app:remove', account_id, platform } as const;
    const { replayed } = await act(accountApps, accountAppsStream(account_id), remove);
    // On a repetition the reactor deletes the secret, because a new one may have been stored since the first attempt.
    if (!replayed) await dropApp(services.db, account_id, platform, kept);
    return { success: true };
  },
});
