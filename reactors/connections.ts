import { z } from 'zod';
import { dropGrant, otherGrants, readGrant } from '../access/connection-grants';
import { ReconnectRequired } from '../access/connection-tokens';
import { job, type JobTools } from '../access/job';
import { subscribeChannel, tokenOf } from '../access/vendor-connections';
import { withToken } from '../access/with-token';
import { INSTALLATION } from '../access/oauth-apps';
import { reactor, type ReactionTools } from '../access/reactor';
import { ACCOUNT_APP_EVENTS } from '../domain/account-apps';
import { ACCOUNT_EVENTS } from '../domain/accounts';
import { CONNECTION_EVENTS } from '../domain/connections';
import { SE_TOKEN_EVENTS, seTokens, seTokensStream } from '../domain/se-tokens';
import { SYSTEM_CONNECTION_EVENTS } from '../domain/system-connections';

/** Where the vendor refuses the tokens there is nothing to do: connecting again enqueues the job anew. */
async function unlessFlagged(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof ReconnectRequired)) throw error;
  }
}

/** Asks Kick for the events of a channel that was connected; done again it asks for what is missing. */
export const subscribeToKick = job({
  name: 'subscribe-to-kick',
  payload: { connection_id: z.uuid() },
  after_unknown: 'repeat',
  async run({ connection_id }, _attempt, { db, connections }) {
    // Connected by an operator, or disconnected by now: there is no token to ask with.
    const grant = await readGrant({ db, texts: connections.texts }, connection_id);
    if (grant === null) return;
    const channel = { ...grant, platform_channel_id: grant.platform_user_id };
    await unlessFlagged(subscribeChannel({ ...connections, db }, channel));
  },
});

/**
 * Ends what a connection was at the vendor, and destroys its tokens here. What another account has of the same channel
 * by the same app stays: Kick has one set of subscriptions for both, and Google one grant.
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
  // Ending the subscriptions may have refreshed the tokens.
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

/** Deletes the secret of an app that was removed, unless another one was set since. */
const forgetApp = (owner: string, platform: string, removed_at: string, { keep }: ReactionTools): void =>
  keep('delete from app_secrets where id = $1 and set_at <= $2', [`${owner}/${platform}`, removed_at]);

/**
 * What follows at the vendor when something is connected or disconnected, and what is sealed of it. Twitch's
 * subscriptions live as long as the socket that its adapter holds; YouTube and Trovo have none of ours.
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
