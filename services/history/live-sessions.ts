import type { LiveMessages } from '../../app/services';
import { historyChannel } from '../../domain/history/history-channel';
import { publicStatsChannel } from '../../domain/history/public-stats';
import type { SessionFigures, StoredStream } from '../../domain/history/session-figures';
import { countedSummary } from '../../domain/history/session-summary';
import type { Queryable } from '../../engines/postgres/port';

/**
 * Broadcasts new figures of a live session, without its lists: to its account, and once a minute those of each public
 * stream to everybody.
 */
export const announceSession =
  ({ live, db }: { live: LiveMessages; db: Pick<Queryable, 'query'> }) =>
  async (
    { id, account_id, is_first_of_minute }: { id: string; account_id: string; is_first_of_minute: boolean },
    figures: SessionFigures,
  ): Promise<void> => {
    const send = (channel: string, event_type: string, data: object) =>
      live.broadcast(channel, { type: 'event', channel, event_type, data });
    const item = countedSummary(id, figures, null);
    await send(historyChannel(account_id), 'history:session_updated', { session_id: id, ...item });
    if (!is_first_of_minute) return;
    for (const stream of figures.streams) {
      if (stream.ended_at !== null || (await isClosed(db, stream))) continue;
      await send(
        publicStatsChannel(stream.platform, stream.broadcast_id),
        'public-stats:updated',
        publicFigures(stream),
      );
    }
  };

async function isClosed(
  db: Pick<Queryable, 'query'>,
  { platform, platform_channel_id }: StoredStream,
): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from public_channels where platform = $1 and platform_channel_id = $2 and not is_public limit 1`,
    [platform, platform_channel_id],
    'public-channel-closed',
  );
  return rows.length > 0;
}

const publicFigures = (stream: StoredStream): object => ({
  platform: stream.platform,
  broadcast_id: stream.broadcast_id,
  title: stream.title,
  category: stream.category,
  duration_secs: stream.duration_secs,
  viewer_count: stream.viewer_markers?.last ?? null,
  peak_viewers: stream.peak_viewers,
  avg_viewers: stream.avg_viewers,
  total_messages: stream.total_messages,
  new_followers: stream.new_followers,
});
