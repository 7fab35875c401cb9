import type { LiveMessages } from '../../app/services';
import type { Platform } from '../../domain/common/vendors';
import { historyChannel } from '../../domain/history/history-channel';
import { publicStatsChannel } from '../../domain/history/public-stats';
import type { SessionFigures } from '../../domain/history/session-figures';
import { countedSummary } from '../../domain/history/session-summary';
import type { AnnouncedSession } from './stream-sessions';

/**
 * Broadcasts new figures of a live session, without its lists: to its account, and once a minute those of each public
 * stream to everybody.
 */
export const announceSession =
  ({
    live,
    publicStream,
  }: {
    live: LiveMessages;
    /** The public page of a stream; undefined of a closed channel. */
    publicStream(platform: Platform, broadcast_id: string): Promise<object | undefined>;
  }) =>
  async (
    { id, account_id, is_first_of_minute, ended_at: ended }: AnnouncedSession,
    figures: SessionFigures,
  ): Promise<void> => {
    const send = (channel: string, event_type: string, data: object) =>
      live.broadcast(channel, { type: 'event', channel, event_type, data });
    const item = countedSummary(id, figures, ended);
    await send(historyChannel(account_id), 'history:session_updated', { session_id: id, ...item });
    if (!is_first_of_minute) return;
    for (const { platform, broadcast_id, ended_at } of figures.streams) {
      const shown = ended_at === null ? await publicStream(platform, broadcast_id) : undefined;
      if (shown === undefined) continue;
      await send(publicStatsChannel(platform, broadcast_id), 'public-stats:updated', shown);
    }
  };
