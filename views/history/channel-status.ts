import { z } from 'zod';
import { PLATFORMS } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';

const dateTime = z.string().meta({ format: 'date-time' });

/** A connected channel, and a broadcast of it where one is on air. Source: spec extra-facts §17. */
export const ChannelStatus = z
  .object({
    platform: z.string(),
    is_online: z.boolean(),
    broadcast_id: z.string().nullable().describe("The platform's id of the broadcast; null while nothing is on air"),
    broadcast_status: z.string().nullable().describe('`live`; null while nothing is on air'),
    stream_title: z.string().nullable(),
    category: z.string().nullable(),
    viewer_count: z.int().max(Number.MAX_SAFE_INTEGER).nullable().describe('Of the newest sample'),
    started_at: dateTime.nullable(),
    live_chat_id: z.string().nullable().describe('Of YouTube alone'),
    updated_at: dateTime.nullable().describe('Null: it was never seen on air'),
  })
  .meta({ id: 'ChannelStatus' });
export type ChannelStatus = z.output<typeof ChannelStatus>;

/**
 * Rows of the account's connected channels by platform: one for each current broadcast, and one for a channel without
 * any. Figures are included only when they belong to the broadcast.
 */
export function channelStatusesOf(db: Queryable, account_id: string): Promise<ChannelStatus[]> {
  return db.query<ChannelStatus>(
    `select c.platform, s.broadcast_id is not null as is_online, s.broadcast_id,
       case when s.broadcast_id is not null then 'live' end as broadcast_status,
       coalesce(f.stream_title, s.stream_title) as stream_title, coalesce(f.category, s.category) as category,
       f.viewer_count, s.started_at, s.live_chat_id,
       coalesce(greatest(s.updated_at, f.sampled_at), last.updated_at) as updated_at
     from channel_connections c
     left join channel_status s on s.account_id = c.account_id and s.platform = c.platform and s.is_online
     left join broadcast_figures f on f.account_id = s.account_id and f.platform = s.platform
       and f.broadcast_id = s.broadcast_id
     left join lateral (
       select max(updated_at) as updated_at from channel_status o
       where o.account_id = c.account_id and o.platform = c.platform
     ) last on true
     where c.account_id = $1 and c.platform = any($2)
     order by array_position($2::text[], c.platform), s.started_at desc, s.broadcast_id`,
    [account_id, PLATFORMS],
    'channel-statuses',
  );
}
