import { runEvery } from '../../../lib/async/run-every';
import { slices } from '../../../lib/async/collector';
import { Backoff } from '../../../lib/async/retry';
import { Signal } from '../../../lib/async/signal';
import type { Broker, NewRecord } from '../../../engines/broker/port';
import { type Lease, LeaseLost, type Leases } from '../../../engines/leases/port';
import type { Logger } from '../../../engines/log/port';
import type { Metrics } from '../../../engines/metrics/port';
import type { Database, Queryable } from '../../../engines/postgres/port';
import type { Wakeups } from '../../../engines/wakeups/port';
import { describe } from '../drive/failures';

/** Records to relay into a topic for outside consumers. */
export interface Waiting {
  topic: string;
  records: readonly NewRecord[];
  /** Stores that they are relayed, in the caller's transaction. */
  remember(tx: Queryable): Promise<void>;
}

/** `behind` counts the waiting records; 1 where they cannot be counted. `seconds` is the age of the oldest. */
export interface RelayLag {
  behind: number;
  seconds: number;
}

/** Source of a relay, with its stored progress. */
export interface RelaySource {
  readonly name: string;
  /** Wake-up that signals new records. Without one, and when one is lost, the regular poll finds them. */
  readonly wakeup?: string;
  /** Called before the first poll, and again after every failure: loads the stored progress. */
  open(): Promise<void>;
  /**
   * All waiting records, in the order that they need in their topic. The next group is requested after the previous one
   * was remembered.
   */
  waiting(): AsyncIterable<Waiting>;
  lag(): Promise<RelayLag>;
}

export interface TopicRelaysDeps {
  db: Database;
  broker: Broker;
  leases: Leases;
  wakeups: Wakeups;
  log: Logger;
  metrics: Metrics;
  sources: readonly RelaySource[];
  /** Longest time between two polls. Default 1 s. */
  poll_ms?: number;
  /** Interval of the lag measurement. Default 5 s. */
  observe_ms?: number;
}

/** Bounds of one publish. */
const BOUNDS = { items: 500, bytes: 1024 * 1024 };
const LONGEST_BACKOFF_MS = 10_000;

/**
 * Relays each source into its topics, in one process at a time under a lease. At least once: records are remembered as
 * relayed after the log has stored them, and a holder that lost its lease remembers nothing. A repeated record is
 * identical, including its id. Design §6, §7.
 */
export function createTopicRelays(deps: TopicRelaysDeps): { stop(): Promise<void> } {
  const { db, broker, leases, wakeups, log, poll_ms = 1000, observe_ms = 5000 } = deps;
  const labels = ['relay'];
  const lag_records = deps.metrics.gauge(
    'lumio_topic_relay_lag_records',
    'What waits to be relayed (domain events: 1 when behind)',
    labels,
  );
  const lag_seconds = deps.metrics.gauge(
    'lumio_topic_relay_lag_seconds',
    'How long the oldest of it has waited',
    labels,
  );
  const relayed = deps.metrics.counter('lumio_topic_relay_records_total', 'Records relayed by this process', labels);
  const failed = deps.metrics.counter(
    'lumio_topic_relay_failures_total',
    'Times that a relay failed and began anew',
    labels,
  );

  async function pass(source: RelaySource, lease: Lease): Promise<void> {
    for await (const { topic, records, remember } of source.waiting()) {
      for (const group of slices(records, BOUNDS, ({ value }) => ({ items: 1, bytes: value.length })))
        await broker.publish(topic, group);
      await db.transaction(async (tx) => {
        await lease.fence(tx);
        await remember(tx);
      });
      relayed.inc(records.length, { relay: source.name });
      if (lease.signal.aborted) return;
    }
  }

  async function relay(source: RelaySource, lease: Lease): Promise<void> {
    const { signal } = lease;
    const news = new Signal();
    const off = source.wakeup === undefined ? undefined : wakeups.on(source.wakeup, news.raise);
    const backoff = new Backoff({ first_ms: 200, most_ms: LONGEST_BACKOFF_MS });
    try {
      while (!signal.aborted) {
        try {
          await source.open();
          while (!signal.aborted) {
            news.clear();
            await pass(source, lease);
            backoff.reset();
            await news.wait(poll_ms, signal);
          }
        } catch (error) {
          if (error instanceof LeaseLost || signal.aborted) return;
          const wait_ms = backoff.next();
          failed.inc(1, { relay: source.name });
          const { failures } = backoff;
          log.warn({ relay: source.name, err: describe(error), failures }, 'a relay failed; it begins anew');
          await news.wait(wait_ms, signal);
        }
      }
    } finally {
      off?.();
    }
  }

  const campaigns = deps.sources.map((source) =>
    leases.campaign(`relay:${source.name}`, (lease) => relay(source, lease)),
  );
  const end = runEvery(
    observe_ms,
    async () => {
      for (const source of deps.sources) {
        const { behind, seconds } = await source.lag();
        lag_records.set(behind, { relay: source.name });
        lag_seconds.set(seconds, { relay: source.name });
      }
    },
    (error) => log.warn({ err: describe(error) }, 'looking at the lag of relays failed; it is tried again'),
  );
  return {
    async stop() {
      end();
      await Promise.all(campaigns.map((campaign) => campaign.stop()));
    },
  };
}
