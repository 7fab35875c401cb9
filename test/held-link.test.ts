import type { Adapter } from '../ingest/runtime/adapter';
import { HeldLink, type HeldLinkDeps, TIMINGS } from '../ingest/runtime/held-link';
import type { LinkFence, LinkReport } from '../ingest/runtime/link-leases';
import { turn } from '../kernel/signal';
import { silentLog } from './support/log';

const CONNECTION = { connection_id: 'c', account_id: 'a', channel_id: '1' };
const FENCE = { link: 'twitch:c', token: 1 };
const heldOver = (leases: object, given_away_ms_ago: number | null, adapter: Partial<Adapter> = {}) =>
  new HeldLink(
    { vendor: 'twitch', ...adapter } as Adapter,
    CONNECTION,
    { fence: FENCE, state: null, heard_at: null, given_away_ms_ago },
    { leases, log: silentLog, timings: TIMINGS } as unknown as HeldLinkDeps,
  );

test('a link that is closed while the database is away does not report again and again', async () => {
  let reports = 0;
  const leases = {
    async report() {
      reports += 1;
      await turn();
      throw new Error('the database is away');
    },
  };
  const link = heldOver(leases, null);
  link.status('connected');
  await link.close();
  for (let n = 0; n < 50; n += 1) await turn();
  expect(reports).toBe(1);
});

test.each([
  ['reads on', 1_500, [{ given_away: true, given_away_ms_ago: expect.any(Number) }]],
  ['has long ended', TIMINGS.handover_ms, []],
  ['gave nothing away', null, []],
])(
  'one that is given away before it is open, while the process before %s, says just that',
  async (_what, ago, told) => {
    const reports: LinkReport[] = [];
    const leases = {
      async report(_fence: LinkFence, report: LinkReport) {
        if (report.given_away !== undefined) reports.push(report);
        return true;
      },
    };
    const link = heldOver(leases, ago, { connect: () => new Promise(() => undefined) });
    void link.run();
    await link.announce();
    await link.giveAway();
    expect(reports).toEqual(told);
    expect(reports.map(({ given_away_ms_ago }) => given_away_ms_ago! >= ago!)).toEqual(told.map(() => true));
  },
);
