import type { Logger } from '../../engines/log/port';
import type { Queryable } from '../../engines/postgres/port';
import type { PersonalTexts } from '../../privacy/subject-keys/port';
import { type KickSubscriptions, SubscriptionsRefused } from '../../vendors/kick/port';
import type { OAuthApp, OAuthVendor } from '../../vendors/oauth/port';
import { type KeptGrant, writeSubscriptionProblem, writeSubscriptions } from './connection-grants';
import { ReconnectRequired, TokenUnavailable, type ConnectionTokens } from './connection-tokens';
import type { ActiveConnections } from './active-connections';
import { type TokenSource, withToken } from './with-token';

/** Access to the vendors of connections. */
export interface VendorConnections {
  vendors: ReadonlyMap<string, OAuthVendor>;
  tokens: ConnectionTokens;
  /** Decrypts the sealed part of grants. */
  texts: PersonalTexts;
  kick: KickSubscriptions;
  living: ActiveConnections;
  /** The current app of a grant; null when it is gone or replaced by another. */
  appOf(grant: KeptGrant): Promise<OAuthApp | null>;
}

/** Source of a connection's token; renews it after a refusal. */
export const tokenOf =
  (tokens: ConnectionTokens, connection_id: string): TokenSource =>
  (refused) =>
    tokens.token(connection_id, refused);

/** A Kick channel and the app that subscribes to its events. */
interface KickSubscriber {
  connection_id: string;
  platform_channel_id: string;
  client_id: string;
}

/**
 * Creates a channel's missing subscriptions at Kick, and stores the ids of all. Stores a refusal too, for the status of
 * the connection. @throws SubscriptionsRefused and the errors of tokens and calls
 */
export async function subscribeChannel(
  { db, tokens, kick }: Pick<VendorConnections, 'tokens' | 'kick'> & { db: Pick<Queryable, 'query'> },
  { connection_id, platform_channel_id, client_id }: KickSubscriber,
): Promise<void> {
  const grants = { platform: 'kick', platform_user_id: platform_channel_id, client_id };
  try {
    await withToken(tokenOf(tokens, connection_id), (token) =>
      kick.ensure(token, (ids) => writeSubscriptions(db, grants, ids)),
    );
  } catch (error) {
    if (error instanceof SubscriptionsRefused) await writeSubscriptionProblem(db, grants, error.message);
    throw error;
  }
  await writeSubscriptionProblem(db, grants, null);
}

/**
 * Restores subscriptions that Kick has ended: it drops one silently after a day of failed deliveries. Returns the
 * number of channels checked.
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
      // A failure of one channel does not stop the others; the next run retries it.
      if (error instanceof ReconnectRequired || error instanceof TokenUnavailable) continue;
      log.warn({ err: error, connection_id }, 'the subscriptions of a channel at Kick could not be looked after');
    }
  }
  return asked;
}
