import { TOPICS } from '../domain/records';
import { readStreamSample } from '../domain/samples';
import type { Database, Queryable } from '../engines/postgres/port';
import type { LoggedRecord } from '../engines/records/port';
import { projection, topic } from '../kernel/projection';

/**
 * The minute-by-minute figures of broadcasts. A sample that comes again is the same row; the later of two for one
 * instant counts.
 */
export const streamSamples = projection({
  name: 'stream-samples',
  version: 1,
  from: topic(TOPICS.stream_samples),
  tables: ['stream_samples'],
  async apply(batch: readonly LoggedRecord[], tx: Queryable) {
    const rows = new Map<string, unknown>();
    for (const { account_id, platform, occurred_at, raw } of batch) {
      const { broadcast_id, viewer_count, follower_count } = readStreamSample(raw);
      const key = [account_id, platform, broadcast_id, occurred_at].join('\n');
      rows.set(key, { account_id, platform, broadcast_id, sampled_at: occurred_at, viewer_count, follower_count });
    }
    await tx.query(
      `insert into stream_samples (account_id, platform, broadcast_id, sampled_at, viewer_count, follower_count)
       select account_id, platform, broadcast_id, sampled_at, viewer_count, follower_count
       from jsonb_to_recordset($1::jsonb) as s (account_id uuid, platform text, broadcast_id text, sampled_at timestamptz,
                                                viewer_count bigint, follower_count bigint)
       on conflict (account_id, platform, broadcast_id, sampled_at) do update set
         viewer_count = excluded.viewer_count, follower_count = excluded.follower_count`,
      [JSON.stringify([...rows.values()])],
      'stream-samples',
    );
    return [];
  },
});

/** Makes partitions ahead of time; nothing to do on TimescaleDB. Returns how many it made. */
export async function ensureStreamSamplePartitions(db: Database, months = 2): Promise<number> {
  const [row] = await db.query('select ensure_stream_sample_partitions($1) as made', [months]);
  return row!.made as number;
}
