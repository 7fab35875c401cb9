import type { Adapter } from '../ingest/runtime/adapter';
import { HeldLink, type HeldLinkDeps, TIMINGS } from '../ingest/runtime/held-link';
import { turn } from '../kernel/signal';
import { silentLog } from './support/log';

test('a link that is closed while the database is away does not report again and again', async () => {
  let reports = 0;
  const leases = {
    async report() {
      reports += 1;
      await turn();
      throw new Error('the database is away');
    },
  };
  const taken = { fence: { link: 'twitch:c', token: 1 }, state: null, heard_at: null, given_away_ms_ago: null };
  const link = new HeldLink(
    { vendor: 'twitch' } as Adapter,
    { connection_id: 'c', account_id: 'a', channel_id: '1' },
    taken,
    { leases, log: silentLog, timings: TIMINGS } as unknown as HeldLinkDeps,
  );
  link.status('connected');
  await link.close();
  for (let n = 0; n < 50; n += 1) await turn();
  expect(reports).toBe(1);
});
