import { z } from 'zod';
import { dropGrant, otherGrants, readGrant } from '../../services/connections/connection-grants';
import { ReconnectRequired } from '../../services/connections/connection-tokens';
import { job, type JobTools } from '../../app/job';
import { subscribeChannel, tokenOf } from '../../services/connections/vendor-connections';
import { withToken } from '../../services/connections/with-token';
import { SubscriptionsRefused } from '../../vendors/kick/port';
import { INSTALLATION } from '../../services/connections/oauth-apps';
import { reactor, type ReactionTools } from '../../app/reactor';
import { ACCOUNT_APP_EVENTS } from '../../domain/connections/account-apps';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { CONNECTION_EVENTS } from '../../domain/connections/connections';
import { SE_TOKEN_EVENTS, seTokens, seTokensStream } from '../../domain/connections/se-tokens';
import { SYSTEM_CONNECTION_EVENTS } from '../../domain/operators/system-connections';

/** Ignores refused tokens: connecting again enqueues the job again. */
async function unlessFlagged(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof ReconnectRequired)) throw error;
  }
}

/** Subscribes to the events of a connected Kick channel; a repetition requests what is missing. */
export const subscribeToKick = job({
  name: 'subscribe-to-kick',
  payload: { connection_id: z.uuid() },
  after_unknown: 'repeat',
  async run({ connection_id }, _attempt, { db, connections }) {
    // No token: the channel was connected by an operator, or has been disconnected.
    const grant = await readGrant({ db, texts: connections.texts }, connection_id);
    if (grant === null) return;
    const channel = { ...grant, platform_channel_id: grant.platform_user_id };
    await unlessFlagged(subscribeChannel({ ...connections, db }, channel)).catch((error: unknown) => {
      // The status of the connection shows the refusal, and the periodic renewal retries.
      if (!(error instanceof SubscriptionsRefused)) throw error;
    });
  },
});

/**
 * Ends a connection at the vendor and deletes its tokens. What another account uses of the same channel by the same app
 * stays: Kick has one set of subscriptions for both, and Google one grant.
 */
export const endConnection = job({
  name: 'end-connection',
  payload: { connection_id: z.uuid() },
  after_unknown: 'repeat',
  async run({ connection_id }, _attempt, { db, connections }) {
    const grant = await readGrant({ db, texts: connections.texts }, connection_id);
    if (grant !== null) await endAtVendor(grant, { db, connections });
    return (tx) => dropGrant(tx, connection_id);
  },
});

type Kept = NonNullable<Awaited<ReturnType<typeof readGrant>>>;

async function endAtVendor(grant: Kept, { db, connections }: Pick<JobTools, 'db' | 'connections'>): Promise<void> {
  const { connection_id, platform, kind, client_id } = grant;
  const shared = await otherGrants(db, grant);
  if (platform === 'kick' && kind === 'channel' && !shared.includes('channel'))
    await unlessFlagged(withToken(tokenOf(connections.tokens, connection_id), connections.kick.end));
  const vendor = connections.vendors.get(platform);
  if (vendor?.revoke === undefined || (vendor.revoke_ends_all && shared.length > 0)) return;
  // The end of the subscriptions may have refreshed the tokens.
  const last = (await readGrant({ db, texts: connections.texts }, connection_id)) ?? grant;
  const app = await connections.appOf(last);
  await vendor.revoke({ client_id, client_secret: app?.client_secret ?? '' }, last);
}

interface Connected {
  connection_id: string;
  platform: string;
}

const subscribe = ({ connection_id, platform }: Connected, at: string, { enqueue }: ReactionTools): void => {
  if (platform === 'kick') enqueue(subscribeToKick, { key: `${connection_id} ${at}`, payload: { connection_id } });
};
const end = ({ connection_id }: Pick<Connected, 'connection_id'>, { enqueue }: ReactionTools): void =>
  enqueue(endConnection, { key: connection_id, payload: { connection_id } });

/** Deletes the secret of a removed app, unless a later one is stored. */
const forgetApp = (owner: string, platform: string, removed_at: string, { keep }: ReactionTools): void =>
  keep('delete from app_secrets where id = $1 and set_at <= $2', [`${owner}/${platform}`, removed_at]);

/**
 * Follows up at the vendor after a connect or disconnect, and on the sealed data. Twitch's subscriptions last as long
 * as the socket of its adapter; YouTube and Trovo have none of ours.
 */
export const connectionEnds = reactor({
  name: 'connections',
  from: 'beginning',
  events: [CONNECTION_EVENTS, SYSTEM_CONNECTION_EVENTS, ACCOUNT_APP_EVENTS, SE_TOKEN_EVENTS, ACCOUNT_EVENTS],
  on: {
    'connection:channel_connected': (event, tools) => subscribe(event, event.connected_at, tools),
    'connection:reconnected': (event, tools) =>
      event.kind === 'channel' && subscribe(event, event.reconnected_at, tools),
    'connection:reconnect_cleared': (event, tools) =>
      event.kind === 'channel' && subscribe(event, event.cleared_at, tools),
    'connection:channel_disconnected': end,
    'connection:bot_disconnected': end,
    'system_connection:bot_disconnected': end,
    'account_app:removed': ({ account_id, platform, removed_at }, tools) =>
      forgetApp(account_id, platform, removed_at, tools),
    'system_connection:app_removed': ({ platform, removed_at }, tools) =>
      forgetApp(INSTALLATION, platform, removed_at, tools),
    'se_token:deleted': ({ token_id }, { keep }) =>
      keep('delete from se_token_secrets where token_id = $1', [token_id]),
    async 'account:dissolved'({ account_id }, { act, keep, now }) {
      await act(seTokens, seTokensStream(account_id), { type: 'se_token:delete_all', account_id, now });
      keep(`delete from app_secrets where split_part(id, '/', 1) = $1`, [account_id]);
    },
  },
});
