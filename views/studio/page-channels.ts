import type { Queryable } from '../../engines/postgres/port';

/** A channel of a platform. */
export interface PlatformChannel extends Record<string, unknown> {
  platform: string;
  channel_id: string;
}

/** Channels that an account has connected. */
export const channelsOf = (db: Queryable, account_id: string): Promise<PlatformChannel[]> =>
  db.query<PlatformChannel>(
    `select platform, platform_channel_id as channel_id from channel_connections where account_id = $1
     order by platform`,
    [account_id],
    'page-channels',
  );
