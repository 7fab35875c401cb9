import type { Vendor } from '../domain/vendors';
import type { Queryable } from '../engines/postgres/port';
import type { Wakeups } from '../engines/wakeups/port';

/** Told after each commit of the read models that say who is connected. */
export const CONNECTIONS_WAKEUP = 'connections';

/** Something at a vendor that an account is connected to, and that may be used now. */
export interface LivingConnection {
  /** What its token is asked for by ({@link ConnectionTokens}). */
  connection_id: string;
  account_id: string;
  /** The vendor; `streamelements` for a tip token. */
  platform: Vendor;
  kind: 'channel' | 'bot' | 'tip_token';
  /** Its id there: of the channel, the bot, a guild; of a tip token the platform whose tips it gives. */
  platform_channel_id: string;
  /** The app that its token was given to; null where it has no token, since nobody went through the vendor's login. */
  client_id: string | null;
  /** Whether the bot may act there; only channels may be paused. */
  bot_enabled: boolean;
  /** RFC 3339: when it was connected, connected again, or asked to begin anew. Later than before means: begin anew. */
  since: string;
}

/** What may be used now at each vendor: neither disconnected nor flagged to be connected again. */
export interface LivingConnections {
  /** Of all accounts, in the order of their ids. */
  of(platform: Vendor): Promise<LivingConnection[]>;
  /**
   * Told after every change on any node, at most once: whoever must not miss one asks again every few seconds. Returns
   * how to stop.
   */
  onChange(changed: () => void): () => void;
}

/** {@link LivingConnections}, and those that are flagged to be connected again. */
export interface ExistingConnections extends LivingConnections {
  /** Of all accounts, in the order of their ids. */
  all(platform: Vendor): Promise<(LivingConnection & { reconnect_required: boolean })[]>;
}

/** {@link ExistingConnections} over the read models. */
export function createLivingConnections({ db, wakeups }: { db: Queryable; wakeups: Wakeups }): ExistingConnections {
  const all = (platform: Vendor) =>
    db.query<LivingConnection & { reconnect_required: boolean } & Record<string, unknown>>(
      `select c.*, g.client_id from (
         select id as connection_id, account_id, platform, 'channel' as kind, platform_channel_id, bot_enabled,
           reconnect_required, since
         from channel_connections where platform = $1
         union all
         select id, account_id, platform, 'bot', platform_user_id, true, reconnect_required, since
         from bot_connections where platform = $1
         union all
         select id, account_id, 'streamelements', 'tip_token', platform, true, false, saved_at
         from se_tokens where $1 = 'streamelements') c
       left join connection_grants g using (connection_id)
       order by connection_id`,
      [platform],
      'all-connections',
    );
  return {
    all,
    of: async (platform) => (await all(platform)).filter(({ reconnect_required }) => !reconnect_required),
    onChange: (changed) => wakeups.on(CONNECTIONS_WAKEUP, changed),
  };
}
