import { v7 as uuid } from 'uuid';
import { readStreamSample } from '../../domain/history/stream-samples';
import type { LoggedRecord } from '../../engines/records/port';
import { ensureStreamSamplePartitions, streamSamples } from '../../projections/history/stream-samples';
import { type TestDatabase, testDatabase } from '../support/database';

const ACCOUNT = uuid();

function sample(minute: number, viewer_count: number, follower_count: number | null = 10): LoggedRecord {
  const occurred_at = new Date(Date.now() - (60 - minute) * 60_000).toISOString();
  return {
    id: uuid(),
    account_id: ACCOUNT,
    type: 'stream:sample',
    platform: 'kick',
    external_id: null,
    occurred_at,
    received_at: occurred_at,
    subject: null,
    raw: JSON.stringify({ broadcast_id: 'b-1', viewer_count, follower_count }),
    trace: null,
    topic: 'stream-samples',
    partition: 0,
    offset: minute,
  };
}

describe('stream samples', () => {
  let t: TestDatabase;
  beforeAll(async () => {
    t = await testDatabase();
  });
  afterAll(() => t.drop());

  const apply = (batch: LoggedRecord[]) =>
    t.db.transaction((tx) => streamSamples.apply(batch, tx, { rebuilding: false }));

  test('a page that comes again leaves the same rows, and lies in the partition of its month', async () => {
    const page = [sample(1, 5), sample(2, 8, null), sample(3, 6)];
    await apply(page);
    await apply(page);
    const rows = await t.db.query(
      `select viewer_count, follower_count, tableoid::regclass::text as part from stream_samples order by sampled_at`,
    );
    expect(rows.map((row) => [row.viewer_count, row.follower_count])).toEqual([
      [5, 10],
      [8, null],
      [6, 10],
    ]);
    expect(rows.every((row) => row.part !== 'stream_samples_default')).toBe(true);
  });

  test('partitions are made ahead once', async () => {
    expect(await ensureStreamSamplePartitions(t.db)).toBe(0);
    expect(await ensureStreamSamplePartitions(t.db, 4)).toBe(2);
  });

  test.each([
    ['{}', 'broadcast_id must be a text'],
    ['{"broadcast_id":"b","viewer_count":-1}', 'viewer_count must be a whole number of 0 or more'],
    [
      '{"broadcast_id":"b","viewer_count":1,"follower_count":1.5}',
      'follower_count must be a whole number of 0 or more',
    ],
  ])('%s is refused: %s', (raw, message) => {
    expect(() => readStreamSample(raw)).toThrow(message);
  });
});
