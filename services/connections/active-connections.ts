import type { Vendor } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import type { Wakeups } from '../../engines/wakeups/port';

/** Wakeup after each commit of the read models of connections. */
export const CONNECTIONS_WAKEUP = 'connections';

/** A usable connection of an account at a vendor. */
export interface ActiveConnection {
  /** Id for requesting its token ({@link ConnectionTokens}). */
  connection_id: string;
  account_id: string;
  /** The vendor; `streamelements` for a tip token. */
  platform: Vendor;
  kind: 'channel' | 'bot' | 'tip_token';
  /** The vendor's id of the channel, bot or guild; for a tip token the platform whose tips it reads. */
  platform_channel_id: string;
  /** The app that obtained its token; null without a token, where no login at the vendor took place. */
  client_id: string | null;
  /** Whether the bot may act there; only channels may be paused. */
  bot_enabled: boolean;
  /** RFC 3339: last connect, reconnect or restart request. A later value than before requests a restart. */
  since: string;
}

/** Usable connections of each vendor: neither disconnected nor flagged to be connected again. */
export interface ActiveConnections {
  /** Connections of all accounts, ordered by connection id. */
  of(platform: Vendor): Promise<ActiveConnection[]>;
  /**
   * Calls `changed` after a change on any node, at most once per change: a caller that must not miss one also polls.
   * Returns an unsubscribe function.
   */
  onChange(changed: () => void): () => void;
}

/** {@link ActiveConnections}, and those that are flagged to be connected again. */
export interface ExistingConnections extends ActiveConnections {
  /** Connections of all accounts, ordered by connection id. */
  all(platform: Vendor): Promise<(ActiveConnection & { reconnect_required: boolean })[]>;
}

/** {@link ExistingConnections} over the read models. */
export function createActiveConnections({ db, wakeups }: { db: Queryable; wakeups: Wakeups }): ExistingConnections {
  const all = (platform: Vendor) =>
    db.query<ActiveConnection & { reconnect_required: boolean } & Record<string, unknown>>(
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
