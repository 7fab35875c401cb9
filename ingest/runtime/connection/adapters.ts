import { isDeepStrictEqual } from 'node:util';
import type { Vendor } from '../../../domain/common/vendors';
import type { Campaign, Shares } from '../../../engines/leases/port';
import type { Logger } from '../../../engines/log/port';
import type { Metrics } from '../../../engines/metrics/port';
import type { RecordLog } from '../../../engines/records/port';
import { retry } from '../../../lib/async/retry';
import { pause, Signal } from '../../../lib/async/signal';
import { once } from '../../../lib/async/shutdown-stack';
import type { Adapter, LinkedConnection, LinkedConnections } from './adapter';
import type { ChannelEmotes } from '../../../services/chat/emotes';
import type { FirstMessages } from '../parse/first-messages';
import { VendorConnection } from './vendor-connection';
import { linkName, type LinkLeases } from './link-leases';
import { LinkStore } from './link-store';
import { type LinkTimings, TIMINGS } from './link-timings';
import type { ParkedWebhookSink } from '../parked/parked';

export interface AdaptersDeps {
  adapters: readonly Adapter[];
  connections: LinkedConnections;
  /**
   * Returns a token of the connection; `refused` is the one that the vendor has refused.
   * @throws ConnectionRefused
   */
  token(connection: LinkedConnection, refused?: string): Promise<string>;
  /** Flags the connection: its owner must connect it again. */
  refused(connection: LinkedConnection, reason: string): Promise<void>;
  shares: Pick<Shares, 'offer'>;
  leases: LinkLeases;
  records: RecordLog;
  parked: ParkedWebhookSink;
  /** Default: no events of first messages. */
  first_messages?: FirstMessages;
  /** Default: no emotes of third parties and no pictures of badges. */
  emotes?: Pick<ChannelEmotes, 'known'>;
  log: Logger;
  metrics: Metrics;
  timings?: Partial<LinkTimings>;
  /** Time for handing over all links when this process stops. Default 8.75 s. */
  stop_within_ms?: number;
  /** Interval of listing the connections without a change notification. Default 15 s. */
  look_every_ms?: number;
}

interface OfferedLink {
  adapter: Adapter;
  connection: LinkedConnection;
  campaign: Campaign;
  held?: VendorConnection;
  /** True when the connection no longer exists: its work ends, and its row is deleted. */
  gone: boolean;
  /** True when the connection restarts: its kept state stays. */
  goes_on: boolean;
}

export interface RunningAdapters {
  /** Number of links that this process holds. */
  held(): number;
  /** Begins to hand all links over, so that the stop of other parts runs meanwhile. */
  leave(): void;
  /** Resolves when all links are handed over, or their states are stored for later holders. */
  stop(): Promise<void>;
}

interface Begun {
  link: VendorConnection;
  running: Promise<void>;
}

const AT_ONCE: NonNullable<Adapter['opening']> = { use: (work) => work() };

/** Part of the time to stop: for closing the sessions that no successor has opened, and storing received messages. */
const CLOSING_MS = 750;

/**
 * Holds the connections to vendors, each in one of the processes that run this: divided by {@link Shares}, fenced at
 * every write. Added, removed and moved connections are found automatically.
 */
export function startAdapters(deps: AdaptersDeps): RunningAdapters {
  const { adapters, connections, shares, leases, log, metrics, look_every_ms = 15_000 } = deps;
  const { stop_within_ms = 8_750 } = deps;
  const stop_handover_ms = Math.max(stop_within_ms - CLOSING_MS, stop_within_ms / 2);
  const timings = { ...TIMINGS, stop_handover_ms, ...deps.timings };
  const store = new LinkStore(deps);
  const offered = new Map<string, OfferedLink>();
  /** Names of flagged connections by adapter, as last listed: their rows stay until their owners disconnect. */
  const flagged = new Map<Adapter, ReadonlySet<string>>();
  /** Links given away that this process reads until their successors do. */
  const leaving = new Set<Promise<void>>();
  const changed = new Signal();
  let stop_reading_at = Infinity;
  const stopping = new AbortController();
  const link_deps = {
    ...deps,
    store,
    timings,
    stopsReadingAt: () => stop_reading_at,
    missed: metrics.counter('lumio_adapter_gaps_total', 'Times in which a vendor was not listened to', ['vendor']),
    sessions: metrics.counter('lumio_adapter_sessions_total', 'Connections to vendors that were opened', ['vendor']),
  };
  const held = metrics.gauge('lumio_adapter_links', 'Connections to vendors that this process holds', ['vendor']);
  const counts = new Map<Vendor, number>();
  const count = (vendor: Vendor, change: 1 | -1): void => {
    counts.set(vendor, (counts.get(vendor) ?? 0) + change);
    held.set(counts.get(vendor)!, { vendor });
  };

  /**
   * Takes the link when the adapter has a free slot: until then the former holder reads and stores. Null when it is
   * given up earlier.
   */
  function begin(adapter: Adapter, { connection }: OfferedLink, signal: AbortSignal): Promise<Begun | null> {
    const { opening = AT_ONCE, vendor } = adapter;
    return new Promise((resolve, reject) => {
      const giveUp = () => resolve(null);
      signal.addEventListener('abort', giveUp, { once: true });
      const inTurn = async () => {
        if (signal.aborted) return giveUp();
        signal.removeEventListener('abort', giveUp);
        const link = new VendorConnection(adapter, connection, await leases.take(vendor, connection), link_deps);
        resolve({ link, running: link.run() });
        await link.first_try;
      };
      opening.use(inTurn).catch(reject);
    });
  }

  async function hold(adapter: Adapter, one: OfferedLink, signal: AbortSignal): Promise<void> {
    const begun = await begin(adapter, one, signal);
    if (begun === null) return;
    const { link, running } = begun;
    one.held = link;
    count(adapter.vendor, 1);
    await new Promise<void>((given_up) => {
      signal.addEventListener('abort', () => given_up(), { once: true });
      if (signal.aborted) given_up();
    });
    const until = leaveUntil();
    if (!one.gone) await link.announce(until);
    one.held = undefined;
    count(adapter.vendor, -1);
    const left = leave(link, one, until).then(() => running);
    track(left);
    // A removed connection ends before its name is offered again: otherwise the next holder would begin next to this
    // one.
    if (one.gone) await left;
  }

  /** Moment until which links are read on, by `performance.now()`. */
  function leaveUntil(): number {
    return Math.min(performance.now() + timings.handover_ms, stop_reading_at);
  }

  function leave(link: VendorConnection, { gone, goes_on }: OfferedLink, until: number): Promise<void> {
    if (!gone) return link.handOver(() => Math.min(until, stop_reading_at));
    return goes_on ? link.close() : link.forget();
  }

  function track(work: Promise<void>): void {
    const tracked: Promise<void> = work
      .catch((error: unknown) => log.warn({ err: error }, 'a connection to a vendor could not be left in order'))
      .finally(() => leaving.delete(tracked));
    leaving.add(tracked);
  }

  async function allLeft(): Promise<void> {
    while (leaving.size > 0) await Promise.all(leaving);
  }

  async function look(): Promise<void> {
    for (const adapter of adapters) {
      const listed = (await (adapter.connections ?? connections).list(adapter.vendor)).map(
        (one) => [linkName(adapter.vendor, one), one] as const,
      );
      const living = new Map(listed.filter(([, connection]) => !connection.flagged));
      const waiting = new Set(listed.flatMap(([name, connection]) => (connection.flagged ? [name] : [])));
      if (stopping.signal.aborted) return;
      const gone = [...offered].filter(
        ([name, one]) => one.adapter === adapter && !isDeepStrictEqual(living.get(name), one.connection),
      );
      for (const [name, one] of gone) {
        one.gone = true;
        if (waiting.has(name)) one.held?.flag();
        one.goes_on = waiting.has(name) || living.get(name)?.channel_id === one.connection.channel_id;
        offered.delete(name);
      }
      // Ended before its name is offered again.
      await Promise.all(gone.map(([, { campaign }]) => campaign.stop()));
      for (const name of flagged.get(adapter) ?? [])
        if (!waiting.has(name) && !living.has(name)) await leases.drop(name);
      flagged.set(adapter, waiting);
      for (const [name, connection] of living) {
        if (offered.has(name)) continue;
        const one = { adapter, connection, gone: false, goes_on: false } as OfferedLink;
        one.campaign = shares.offer(name, (signal) => hold(adapter, one, signal));
        offered.set(name, one);
      }
    }
  }

  async function watch(): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      changed.clear();
      await retry(look, {
        first_ms: 500,
        most_ms: 10_000,
        signal,
        passing: () => true,
        onFailure: (error) => log.warn({ err: error }, 'the living connections could not be listed; it is tried again'),
      }).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
      await changed.wait(look_every_ms, signal);
    }
  }

  async function leaveAll(): Promise<void> {
    const closed_at = performance.now() + stop_within_ms;
    stop_reading_at = performance.now() + timings.stop_handover_ms;
    stopping.abort();
    for (const off of offs) off();
    await watching;
    await Promise.all([...offered.values()].map(({ campaign }) => campaign.stop()));
    const left = new AbortController();
    void allLeft().then(() => left.abort());
    await pause(closed_at - performance.now(), left.signal);
    // Items that wait for an unavailable engine are given up, because the process ends.
    store.close();
    await allLeft();
  }

  const sources = new Set([connections, ...adapters.flatMap((adapter) => adapter.connections ?? [])]);
  const offs = [...sources].map((source) => source.onChange(changed.raise));
  const watching = watch();
  const stop = once(leaveAll);
  return {
    held: () => [...offered.values()].filter((one) => one.held !== undefined).length,
    // A failure is reported by `stop`, which every caller of this one awaits later.
    leave: () => void stop().catch(() => undefined),
    stop,
  };
}
