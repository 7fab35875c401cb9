import { TOPICS } from '../../../domain/common/records';
import type { LoggedRecord } from '../../../engines/records/port';
import { type ApplyMode, type RecordProjection, topic } from '../../../kernel/projection';
import { applyRecords } from '../../../projections/runtime/drive/apply';
import { type TestDatabase, testDatabase } from '../../support/database';
import { ACCOUNTS, record } from '../../support/projections';

function logged(account_id: string, external_id: string | null, given: Partial<LoggedRecord> = {}): LoggedRecord {
  return { ...record(account_id, ''), external_id, topic: TOPICS.platform_events, partition: 0, offset: 0, ...given };
}

/** A projection that only remembers what it was given. */
function listening(name: string) {
  const given: { id: string; again: boolean | undefined }[] = [];
  const p: RecordProjection = {
    name,
    version: 1,
    from: topic(TOPICS.platform_events),
    tables: [],
    apply(batch, _tx, { again }: ApplyMode) {
      given.push(...batch.map(({ id }) => ({ id, again })));
      return Promise.resolve([]);
    },
  };
  return { p, given, ids: () => given.map(({ id }) => id) };
}

describe('the ledger of a projection', () => {
  let t: TestDatabase;
  beforeAll(async () => void (t = await testDatabase(20)));
  afterAll(() => t.drop());

  test('what a page costs does not grow with a partition that was empty at first', async () => {
    const fresh = await testDatabase(1);
    const { p } = listening('event-log');
    const took: number[] = [];
    for (let n = 0; n < 30; n += 1) {
      const page = Array.from({ length: 1000 }, (_, i) => logged(ACCOUNTS[i % 8]!, `${n} ${i}`));
      const from = performance.now();
      await fresh.db.transaction((tx) => applyRecords(p, page, tx, { rebuilding: false }));
      took.push(performance.now() - from);
    }
    // By the best of each, since a machine that others use is slow at times.
    const [first, early, late] = [took[0]!, Math.min(...took.slice(1, 5)), Math.min(...took.slice(-9))];
    expect(early).toBeLessThan(4 * Math.max(first, late));
    expect(late).toBeLessThan(4 * Math.max(first, early));
    await fresh.drop();
  });
});
