import type { Logger } from '../engines/log/port';
import type { Queryable } from '../engines/postgres/port';
import type { PersonalTexts } from '../engines/subject-keys/port';
import type { KickSubscriptions } from '../vendors/kick/port';
import type { OAuthApp, OAuthVendor } from '../vendors/oauth/port';
import { type KeptGrant, writeSubscriptions } from './connection-grants';
import { ReconnectRequired, TokenAway, type ConnectionTokens } from './connection-tokens';
import type { LivingConnections } from './living-connections';
import { type TokenSource, withToken } from './with-token';

/** How connections are spoken for at their vendors. */
export interface VendorConnections {
  vendors: ReadonlyMap<string, OAuthVendor>;
  tokens: ConnectionTokens;
  /** Opens what is sealed of grants. */
  texts: PersonalTexts;
  kick: KickSubscriptions;
  living: LivingConnections;
  /** The app that a grant was made with; null where it is gone or another one. */
  appOf(grant: KeptGrant): Promise<OAuthApp | null>;
}

/** The token of a connection, and another one where it was refused. */
export const tokenOf =
  (tokens: ConnectionTokens, connection_id: string): TokenSource =>
  (refused) =>
    tokens.token(connection_id, refused);

/** A channel at Kick, and the app that its events are subscribed with. */
interface KickSubscriber {
  connection_id: string;
  platform_channel_id: string;
  client_id: string;
}

/** Makes what a channel lacks of subscriptions at Kick, and stores the ids of all. */
export async function subscribeChannel(
  { db, tokens, kick }: Pick<VendorConnections, 'tokens' | 'kick'> & { db: Pick<Queryable, 'query'> },
  { connection_id, platform_channel_id, client_id }: KickSubscriber,
): Promise<void> {
  const grants = { platform: 'kick', platform_user_id: platform_channel_id, client_id };
  await withToken(tokenOf(tokens, connection_id), (token) =>
    kick.ensure(token, (ids) => writeSubscriptions(db, grants, ids)),
  );
}

/**
 * Asks Kick for what it has ended by itself: after a day of failed deliveries it drops a subscription without a word.
 * Returns how many channels were asked for.
 */
export async function renewKickSubscriptions(
  deps: Pick<VendorConnections, 'living' | 'tokens' | 'kick'> & { db: Pick<Queryable, 'query'> },
  log: Pick<Logger, 'warn'>,
  signal: AbortSignal,
): Promise<number> {
  let asked = 0;
  for (const { connection_id, kind, platform_channel_id, client_id } of await deps.living.of('kick')) {
    if (signal.aborted) break;
    if (kind !== 'channel' || client_id === null) continue;
    try {
      await subscribeChannel(deps, { connection_id, platform_channel_id, client_id });
      asked += 1;
    } catch (error) {
      // One channel's trouble is not the others': it is asked for again the next time.
      if (error instanceof ReconnectRequired || error instanceof TokenAway) continue;
      log.warn({ err: error, connection_id }, 'the subscriptions of a channel at Kick could not be looked after');
    }
  }
  return asked;
}
