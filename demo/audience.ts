import { v7 as uuidv7 } from 'uuid';
import { broadcastIdOf } from '../domain/history/channel-status';
import { TOPICS } from '../domain/common/records';
import { SAMPLE_EVERY_MS, SAMPLE_TYPE, type StreamSample } from '../domain/history/stream-samples';
import type { RecordLog } from '../engines/records/port';
import type { Beat } from './story';

export interface AudienceCredentials {
  account_id: string;
  connections: { kick: { platform_channel_id: string } };
}

/**
 * Appends a sample of the demo's viewers on Kick each minute, as polling Kick would. Called with each beat; always
 * returns false, so that the beat is also sent.
 */
export function createAudience(
  records: Pick<RecordLog, 'append'>,
  { account_id, connections }: AudienceCredentials,
): (beat: Beat, onProblem: (problem: string) => void) => boolean {
  let broadcast: { id: string; title: string } | null = null;
  let viewers = 40;
  let sampled = 0;
  return (beat, onProblem) => {
    const now = Date.now();
    if (beat.kind === 'stream') {
      const id = broadcastIdOf(connections.kick.platform_channel_id, beat.started_at ?? null);
      broadcast = beat.is_live && id !== null ? { id, title: beat.title } : null;
    }
    viewers = Math.max(1, viewers + (beat.kind === 'raid' ? beat.viewers : Math.round((Math.random() - 0.48) * 4)));
    const minute = Math.floor(now / SAMPLE_EVERY_MS) * SAMPLE_EVERY_MS;
    if (broadcast === null || minute === sampled) return false;
    sampled = minute;
    const at = new Date(minute).toISOString();
    const sample: StreamSample = {
      broadcast_id: broadcast.id,
      viewer_count: viewers,
      follower_count: null,
      title: broadcast.title,
      category: 'Just Chatting',
      tags: ['demo'],
    };
    const appended = records.append(TOPICS.stream_samples, [
      {
        id: uuidv7(),
        account_id,
        type: SAMPLE_TYPE,
        platform: 'kick',
        external_id: `kick:sample:${broadcast.id}:${at}`,
        occurred_at: at,
        received_at: new Date(now).toISOString(),
        subject: null,
        raw: JSON.stringify(sample),
        trace: null,
      },
    ]);
    appended.catch((error: Error) => {
      // The next beat appends the sample of this minute again.
      sampled = 0;
      onProblem(`sample of viewers: ${error.message}`);
    });
    return false;
  };
}
