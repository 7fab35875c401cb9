import { type Adapter, LinkLost, PauseAsked, type Received } from '../../ingest/runtime/connection/adapter';
import { VendorConnection, type VendorConnectionDeps } from '../../ingest/runtime/connection/vendor-connection';
import type { LinkFence, LinkReport, Successor } from '../../ingest/runtime/connection/link-leases';
import { TIMINGS } from '../../ingest/runtime/connection/link-timings';
import { pause, yieldToEventLoop } from '../../lib/async/signal';
import { silentLog } from '../support/log';
import { until } from '../support/projections';
import { HttpFailed } from '../../vendors/http/port';

const CONNECTION = { connection_id: 'c', account_id: 'a', channel_id: '1' };
const FENCE = { link: 'twitch:c', token: 1 };
const heldOver = (leases: object, reads_on_until: number | null, adapter: Partial<Adapter> = {}) =>
  new VendorConnection(
    { vendor: 'twitch', ...adapter } as Adapter,
    CONNECTION,
    { fence: FENCE, state: null, heard_at: null, reads_on_until },
    { leases, log: silentLog, timings: TIMINGS } as unknown as VendorConnectionDeps,
  );

test('a link that is closed while the database is away does not report again and again', async () => {
  let reports = 0;
  const leases = {
    async report() {
      reports += 1;
      await yieldToEventLoop();
      throw new Error('the database is away');
    },
  };
  const link = heldOver(leases, null);
  link.status('connected');
  await link.close();
  for (let n = 0; n < 50; n += 1) await yieldToEventLoop();
  expect(reports).toBe(1);
});

test.each([
  ['lost', new LinkLost('Discord did not answer in time.'), 'Discord did not answer in time.'],
  ['told to wait', new PauseAsked('Discord asks to wait.', 1_000), 'Discord asks to wait.'],
  ['answered with a failure', new HttpFailed('api.example.com', 503), 'api.example.com answered 503'],
  [
    'failed otherwise',
    new Error('connect ECONNREFUSED 10.0.3.7:5432'),
    'The connection has failed; it is tried again.',
  ],
])(
  'a link that is %s shows its account a sentence without the addresses of this installation',
  async (_how, error, shown) => {
    const details: unknown[] = [];
    const leases = {
      async report(_fence: LinkFence, { status, detail }: LinkReport) {
        if (status === 'retrying') details.push(detail);
        return true;
      },
    };
    const link = heldOver(leases, null, {
      connect: async () => {
        throw error;
      },
    });
    const running = link.run();
    await until(() => details.length > 0);
    await link.close();
    await running;
    expect(details[0]).toBe(shown);
  },
);

test.each([
  ['reads on', 1_500, 1],
  ['has long ended', -1, 0],
  ['gave nothing away', null, 0],
])('one that is given away before it is open, while the process before %s, says just that', async (_what, ms, told) => {
  const reports: LinkReport[] = [];
  const leases = {
    async report(_fence: LinkFence, report: LinkReport) {
      if (report.reads_on_until !== undefined) reports.push(report);
      return true;
    },
  };
  const ends_at = performance.now() + (ms ?? 0);
  const link = heldOver(leases, ms === null ? null : ends_at, { connect: () => new Promise(() => undefined) });
  void link.run();
  await link.announce(performance.now() + TIMINGS.handover_ms);
  await link.handOver(() => Infinity);
  expect(reports).toHaveLength(told);
  for (const { reads_on_until } of reports) expect(reads_on_until).toBe(ends_at);
});

describe('a link that is handed over', () => {
  const FAST = { ...TIMINGS, look_ms: 5, read_on_ms: 0 };
  /** An open link that keeps a state; its successor is the given one. */
  async function open(successor: Successor) {
    const reports: LinkReport[] = [];
    const leases = {
      successor: async () => successor,
      async report(_fence: LinkFence, report: LinkReport) {
        reports.push({ ...report });
        return true;
      },
    };
    const ended = new Promise<void>(() => undefined);
    const adapter = { vendor: 'twitch', connect: async () => ({ ended }), stop: async () => undefined };
    const link = new VendorConnection(
      adapter as unknown as Adapter,
      CONNECTION,
      { fence: FENCE, state: null, heard_at: null, reads_on_until: null },
      { leases, log: silentLog, timings: FAST, sessions: { inc: () => undefined } } as unknown as VendorConnectionDeps,
    );
    void link.run();
    await until(() => reports.some(({ status }) => status === 'connected'));
    link.keep({ page: 7 });
    link.heard(1_000);
    reports.length = 0;
    return { link, reports };
  }

  test.each([
    ['that no process wants', { taken: false, wanted: false }, Infinity],
    ['that no process has taken in time', { taken: false, wanted: true }, 30],
  ])('%s leaves its state, and a gap for its next holder', async (_what, successor, ms) => {
    const { link, reports } = await open(successor);
    const until = performance.now() + ms;
    await link.handOver(() => until);
    expect(reports.at(-1)).toEqual({ reads_on_until: null, state: { page: 7 }, heard_at: 1_000 });
    expect(link.signal.aborted).toBe(true);
  });

  test('promises to read no longer than a process that stops may', async () => {
    const { link, reports } = await open({ taken: true, wanted: true });
    const now = performance.now();
    await link.announce(now + TIMINGS.handover_ms);
    await link.announce(now + 100);
    expect(reports[0]!.reads_on_until! - now).toBeGreaterThan(TIMINGS.stop_handover_ms - 1);
    expect(reports[0]!.reads_on_until! - now).toBeLessThan(TIMINGS.handover_ms - 1);
    expect(reports[1]!.reads_on_until! - now).toBe(100);
    await link.handOver(() => now);
  });

  test('ends when the time to stop has come, whatever was agreed before', async () => {
    const { link } = await open({ taken: true, wanted: true });
    let until = Infinity;
    const left = link.handOver(() => until);
    until = performance.now();
    await left;
    expect(link.signal.aborted).toBe(true);
  });
});

test('a link that another process has taken is not opened again: that would end the session of its successor', async () => {
  let opened = 0;
  let retrying = 0;
  const leases = {
    async report(_fence: LinkFence, { status }: LinkReport) {
      if (status === 'retrying') retrying += 1;
      return false;
    },
  };
  const link = heldOver(leases, null, {
    connect: async () => {
      opened += 1;
      throw new LinkLost('Discord has closed the connection (4000).');
    },
  });
  const running = link.run();
  try {
    await until(() => retrying > 0);
    await pause(4 * TIMINGS.retry.first_ms);
    expect(opened).toBe(1);
  } finally {
    await link.handOver(() => Infinity);
    await running;
  }
});

describe('what a holder receives after another process took its link', () => {
  const FAST = { ...TIMINGS, handover_ms: 2_000, look_ms: 5, read_on_ms: 0 };
  /** State: the first number that the successor received. */
  const adapter: Partial<Adapter> = {
    ownerOf: ({ text }, state) => (Number(text) < Number(state) ? 'former' : 'successor'),
    normalise: () => ({ kind: 'skip' }) as never,
  };
  /** A link that is not the holder's any more; what it stores without a fence all the same is `alone`. */
  function replaced(timings = FAST, stopsReadingAt?: () => number) {
    const found: { successor: Successor; looks: number; unavailable: boolean } = {
      ...{ successor: { taken: true, wanted: true }, looks: 0 },
      unavailable: false,
    };
    const ending = new AbortController();
    const alone: string[] = [];
    const store = {
      ending: ending.signal,
      item: (_vendor: unknown, _connection: unknown, _fence: unknown, received: Received) => ({ received, bytes: 1 }),
      async add({ received, unfenced }: { received: Received; unfenced?: boolean }) {
        if (unfenced === true) alone.push(received.text);
        return unfenced === true ? 'stored' : 'replaced';
      },
    };
    const leases = {
      async successor() {
        found.looks += 1;
        if (found.unavailable) throw new Error('the database is unavailable');
        return found.successor;
      },
      report: async () => true,
    };
    const link = new VendorConnection(
      { vendor: 'twitch', ...adapter } as Adapter,
      CONNECTION,
      { fence: FENCE, state: null, heard_at: null, reads_on_until: null },
      { leases, store, log: silentLog, timings, stopsReadingAt } as unknown as VendorConnectionDeps,
    );
    const deliver = (n: number) => link.deliver({ text: String(n), received_at: 0 });
    return { found, alone, deliver, ending };
  }

  test('is left to the successor that receives it, once all is open', async () => {
    const { found, alone, deliver } = replaced();
    found.successor = { taken: true, wanted: true, beginning: 5 };
    const all = Promise.all([4, 5].map(deliver));
    await until(() => found.looks > 1);
    found.successor = { taken: true, wanted: true, beginning: 5, state: 5 };
    await all;
    expect(alone).toEqual(['4']);
  });

  test('is stored when the successor that received it gave up before all was open', async () => {
    const { found, alone, deliver } = replaced();
    found.successor = { taken: true, wanted: true, beginning: 5 };
    const all = Promise.all([4, 5, 8].map(deliver));
    await until(() => found.looks > 1);
    found.successor = { taken: true, wanted: true };
    await until(() => found.looks > 3);
    found.successor = { taken: true, wanted: true, state: 8 };
    await all;
    expect([...alone].sort()).toEqual(['4', '5']);
  });

  test('is not decided while the database does not answer', async () => {
    const { found, alone, deliver } = replaced({ ...FAST, handover_ms: 0 });
    found.unavailable = true;
    const all = Promise.all([4, 5].map(deliver));
    await until(() => found.looks > 10);
    expect(alone).toEqual([]);
    found.successor = { taken: true, wanted: true, state: 5 };
    found.unavailable = false;
    await all;
    expect(alone).toEqual(['4']);
  });

  test('is given up when the process ends and the database does not answer', async () => {
    const { found, alone, deliver, ending } = replaced();
    found.unavailable = true;
    const all = Promise.all([4].map(deliver));
    await until(() => found.looks > 1);
    ending.abort(new Error('the process ends'));
    await all;
    expect(alone).toEqual([]);
  });

  test('is stored when a process that stops reads no more, and the successor has opened nothing', async () => {
    const { found, alone, deliver } = replaced({ ...FAST, handover_ms: Infinity }, () => 0);
    await Promise.all([1, 2].map(deliver));
    expect([...alone].sort()).toEqual(['1', '2']);
    found.successor = { taken: true, wanted: true, beginning: 4 };
    await Promise.all([3, 4].map(deliver));
    expect([...alone].sort()).toEqual(['1', '2', '3']);
  });

  test('long after the handover waits for what the successor is about to report', async () => {
    const { found, alone, deliver } = replaced({ ...FAST, handover_ms: 0, look_ms: 50 });
    await deliver(1);
    const arrived = deliver(7);
    found.successor = { taken: true, wanted: true, beginning: 7 };
    await arrived;
    expect(alone).toEqual(['1']);
  });

  test('is stored when the successor has opened only a part of it at the end of the handover', async () => {
    const { found, alone, deliver } = replaced();
    const all = Promise.all([1, 2, 3, 4].map(deliver));
    await until(() => found.looks > 1);
    found.successor = { taken: true, wanted: true, beginning: 3 };
    await all;
    // Each waits by itself, so that their order is open.
    expect([...alone].sort()).toEqual(['1', '2']);
    // All that wait share one look.
    expect(found.looks).toBeLessThan(FAST.handover_ms / FAST.look_ms + 100);
  });
});
