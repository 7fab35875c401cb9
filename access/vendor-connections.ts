import type { Logger } from '../engines/log/port';
import type { PersonalTexts } from '../engines/subject-keys/port';
import type { KickSubscriptions } from '../vendors/kick/port';
import type { OAuthApp, OAuthVendor } from '../vendors/oauth/port';
import type { KeptGrant } from './connection-grants';
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

/**
 * Asks Kick for what it has ended by itself: after a day of failed deliveries it drops a subscription without a word.
 * Returns how many channels were asked for.
 */
export async function renewKickSubscriptions(
  { living, tokens, kick }: Pick<VendorConnections, 'living' | 'tokens' | 'kick'>,
  log: Pick<Logger, 'warn'>,
  signal: AbortSignal,
): Promise<number> {
  let asked = 0;
  for (const { connection_id, kind, client_id } of await living.of('kick')) {
    if (signal.aborted) break;
    if (kind !== 'channel' || client_id === null) continue;
    try {
      await withToken(tokenOf(tokens, connection_id), kick.ensure);
      asked += 1;
    } catch (error) {
      // One channel's trouble is not the others': it is asked for again the next time.
      if (error instanceof ReconnectRequired || error instanceof TokenAway) continue;
      log.warn({ err: error, connection_id }, 'the subscriptions of a channel at Kick could not be looked after');
    }
  }
  return asked;
}
