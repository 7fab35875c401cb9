import { channelStatusChannel } from '../../domain/history/channel-status';
import { shownInstant } from '../../lib/time/instants';
import { TOPICS } from '../../domain/common/records';
import { readStreamSample, type StreamSample } from '../../domain/history/stream-samples';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import { type ApplyMode, type ChannelMessage, projection, topic } from '../../kernel/projection';

/**
 * Figures of broadcasts per minute, and the newest of each, which is published on `channel-status:<account_id>`. A
 * repeated sample is the same row; the later of two for one instant counts.
 */
export const streamSamples = projection({
  name: 'stream-samples',
  version: 3,
  from: topic(TOPICS.stream_samples),
  tables: ['stream_samples', 'broadcast_figures'],
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode): Promise<ChannelMessage[]> {
    const rows = new Map<string, Row>();
    const newest = new Map<string, Row>();
    for (const { account_id, platform, occurred_at, raw } of batch) {
      const sample = readStreamSample(raw);
      const row = { account_id, platform, sampled_at: occurred_at, ...sample };
      const broadcast = [account_id, platform, sample.broadcast_id].join('\n');
      rows.set(`${broadcast}\n${occurred_at}`, row);
      if (!(Date.parse(newest.get(broadcast)?.sampled_at ?? '') > Date.parse(occurred_at))) newest.set(broadcast, row);
    }
    await tx.query(
      `insert into stream_samples (account_id, platform, broadcast_id, sampled_at, viewer_count, follower_count,
         stream_title, category)
       select account_id, platform, broadcast_id, sampled_at, viewer_count, follower_count, title, category
       from jsonb_to_recordset($1::jsonb) as s (account_id uuid, platform text, broadcast_id text, sampled_at timestamptz,
         viewer_count bigint, follower_count bigint, title text, category text)
       on conflict (account_id, platform, broadcast_id, sampled_at) do update set
         viewer_count = excluded.viewer_count, follower_count = excluded.follower_count,
         stream_title = excluded.stream_title, category = excluded.category`,
      [JSON.stringify([...rows.values()])],
      'stream-samples',
    );
    const shown = await tx.query<{ account_id: string; platform: string; broadcast_id: string }>(
      `insert into broadcast_figures as f (account_id, platform, broadcast_id, viewer_count, follower_count, stream_title,
         category, tags, sampled_at)
       select account_id, platform, broadcast_id, viewer_count, follower_count, title, category, tags, sampled_at
       from jsonb_to_recordset($1::jsonb) as s (account_id uuid, platform text, broadcast_id text, viewer_count bigint,
         follower_count bigint, title text, category text, tags jsonb, sampled_at timestamptz)
       order by account_id, platform, broadcast_id
       on conflict (account_id, platform, broadcast_id) do update set
         viewer_count = excluded.viewer_count, follower_count = excluded.follower_count,
         stream_title = excluded.stream_title, category = excluded.category, tags = excluded.tags,
         sampled_at = excluded.sampled_at
         where excluded.sampled_at > f.sampled_at
       returning account_id, platform, broadcast_id`,
      [JSON.stringify([...newest.values()])],
      'broadcast-figures',
    );
    if (mode.rebuilding) return [];
    return shown.map(({ account_id, platform, broadcast_id }) => {
      const { account_id: _account, ...figures } = newest.get([account_id, platform, broadcast_id].join('\n'))!;
      const data = JSON.stringify({ ...figures, sampled_at: shownInstant(figures.sampled_at) });
      return { channel: channelStatusChannel(account_id), event_type: 'channel:figures', data };
    });
  },
});

type Row = StreamSample & { account_id: string; platform: string; sampled_at: string };

/** Makes partitions ahead of time; nothing to do on TimescaleDB. Returns the number of new partitions. */
export async function ensureStreamSamplePartitions(db: Database, months = 2): Promise<number> {
  const [row] = await db.query('select ensure_stream_sample_partitions($1) as made', [months]);
  return row!.made as number;
}
