import type { Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';

/** Channel that an account has connected on a platform. */
export interface OwnChannel {
  connection_id: string;
  /** The platform's id of the channel. */
  channel_id: string;
  reconnect_required: boolean;
}

/** Returns null where the account has no channel connected on the platform. */
export async function ownChannel(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  platform: Platform,
): Promise<OwnChannel | null> {
  const [row] = await db.query<OwnChannel & Record<string, unknown>>(
    `select id as connection_id, platform_channel_id as channel_id, reconnect_required from channel_connections
     where account_id = $1 and platform = $2`,
    [account_id, platform],
    'own-channel',
  );
  return row ?? null;
}
