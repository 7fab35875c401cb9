import { isDeepStrictEqual } from 'node:util';
import type { Vendor } from '../../domain/vendors';
import type { Campaign, Shares } from '../../engines/leases/port';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { RecordLog } from '../../engines/records/port';
import { retry } from '../../kernel/retry';
import { pause, Signal } from '../../kernel/signal';
import type { Adapter, LinkedConnection, LinkedConnections } from './adapter';
import { HeldLink, type LinkTimings, TIMINGS } from './held-link';
import { linkName, type LinkLeases } from './link-leases';
import { LinkStore } from './link-store';
import type { ParkedWebhookSink } from './parked';

export interface AdaptersDeps {
  adapters: readonly Adapter[];
  connections: LinkedConnections;
  /** A token of the connection; `refused` names the one that the vendor has refused. @throws ConnectionRefused */
  token(connection: LinkedConnection, refused?: string): Promise<string>;
  /** Flags the connection: its owner must connect anew. */
  refused(connection: LinkedConnection, reason: string): Promise<void>;
  shares: Pick<Shares, 'offer'>;
  leases: LinkLeases;
  records: RecordLog;
  parked: ParkedWebhookSink;
  log: Logger;
  metrics: Metrics;
  timings?: Partial<LinkTimings>;
  /** How often the living connections are looked at without a word of change. Default 15 s. */
  look_every_ms?: number;
}

interface Offered {
  connection: LinkedConnection;
  campaign: Campaign;
  held?: HeldLink;
  /** Its work ends, and its row is forgotten with it. */
  gone: boolean;
  /** It begins anew: what was kept is not forgotten. */
  goes_on: boolean;
}

interface Begun {
  link: HeldLink;
  running: Promise<void>;
}

const AT_ONCE: NonNullable<Adapter['opening']> = { use: (work) => work() };

/** A process that stops waits no longer for engines that are away. */
const STOP_WITHIN_MS = 6_000;

/**
 * Holds the connections to vendors, each by one of the processes that run this: shared out by {@link Shares}, fenced at
 * every write. A connection that comes, goes or moves is found by itself.
 */
export function startAdapters(deps: AdaptersDeps): { stop(): Promise<void>; held(): number } {
  const { adapters, connections, shares, leases, log, metrics, look_every_ms = 15_000 } = deps;
  const store = new LinkStore(deps);
  const offered = new Map<string, Offered>();
  /** Names of flagged connections by vendor, as last listed: their rows stay until their owners disconnect them. */
  const flagged = new Map<Vendor, ReadonlySet<string>>();
  /** Given away, and still reading until their successors do. */
  const leaving = new Set<Promise<void>>();
  const changed = new Signal();
  const stopping = new AbortController();
  const link_deps = {
    ...deps,
    store,
    timings: { ...TIMINGS, ...deps.timings },
    missed: metrics.counter('lumio_adapter_gaps_total', 'Times in which a vendor was not listened to', ['vendor']),
    sessions: metrics.counter('lumio_adapter_sessions_total', 'Connections to vendors that were opened', ['vendor']),
  };
  const held = metrics.gauge('lumio_adapter_links', 'Connections to vendors that this process holds', ['vendor']);
  const counts = new Map<Vendor, number>();
  const count = (vendor: Vendor, change: 1 | -1): void => {
    counts.set(vendor, (counts.get(vendor) ?? 0) + change);
    held.set(counts.get(vendor)!, { vendor });
  };

  /** Taken in its turn: until then the former holder reads and stores. Null where it is given up before. */
  function begin(adapter: Adapter, { connection }: Offered, signal: AbortSignal): Promise<Begun | null> {
    const { opening = AT_ONCE, vendor } = adapter;
    return new Promise((resolve, reject) => {
      const giveUp = () => resolve(null);
      signal.addEventListener('abort', giveUp, { once: true });
      const inTurn = async () => {
        if (signal.aborted) return giveUp();
        signal.removeEventListener('abort', giveUp);
        const link = new HeldLink(adapter, connection, await leases.take(vendor, connection), link_deps);
        resolve({ link, running: link.run() });
        await link.first_try;
      };
      opening.use(inTurn).catch(reject);
    });
  }

  async function hold(adapter: Adapter, one: Offered, signal: AbortSignal): Promise<void> {
    const begun = await begin(adapter, one, signal);
    if (begun === null) return;
    const { link, running } = begun;
    one.held = link;
    count(adapter.vendor, 1);
    await new Promise<void>((given_up) => {
      signal.addEventListener('abort', () => given_up(), { once: true });
      if (signal.aborted) given_up();
    });
    if (!one.gone) await link.announce();
    one.held = undefined;
    count(adapter.vendor, -1);
    const left = leave(link, one).then(() => running);
    track(left);
    // A connection that is gone ends before its name can be offered anew: else the next holder begins beside this one.
    if (one.gone) await left;
  }

  function leave(link: HeldLink, { gone, goes_on }: Offered): Promise<void> {
    if (!gone) return link.giveAway(stopping.signal.aborted);
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
      const listed = (await connections.list(adapter.vendor)).map(
        (one) => [linkName(adapter.vendor, one), one] as const,
      );
      const living = new Map(listed.filter(([, connection]) => !connection.flagged));
      const waiting = new Set(listed.flatMap(([name, connection]) => (connection.flagged ? [name] : [])));
      if (stopping.signal.aborted) return;
      const gone = [...offered].filter(
        ([name, { connection }]) =>
          name.startsWith(`${adapter.vendor}:`) && !isDeepStrictEqual(living.get(name), connection),
      );
      for (const [name, one] of gone) {
        one.gone = true;
        if (waiting.has(name)) one.held?.flag();
        one.goes_on = waiting.has(name) || living.get(name)?.channel_id === one.connection.channel_id;
        offered.delete(name);
      }
      // Ended before its name is offered anew.
      await Promise.all(gone.map(([, { campaign }]) => campaign.stop()));
      for (const name of flagged.get(adapter.vendor) ?? [])
        if (!waiting.has(name) && !living.has(name)) await leases.drop(name);
      flagged.set(adapter.vendor, waiting);
      for (const [name, connection] of living) {
        if (offered.has(name)) continue;
        const one = { connection, gone: false, goes_on: false } as Offered;
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

  const off = connections.onChange(changed.raise);
  const watching = watch();
  return {
    held: () => [...offered.values()].filter((one) => one.held !== undefined).length,
    async stop() {
      stopping.abort();
      off();
      await watching;
      await Promise.all([...offered.values()].map(({ campaign }) => campaign.stop()));
      const left = new AbortController();
      void allLeft().then(() => left.abort());
      await pause(STOP_WITHIN_MS, left.signal);
      // What still waits for an engine that is away is given up: it would wait in vain.
      store.close();
      await allLeft();
    },
  };
}
