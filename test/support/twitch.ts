import { v7 as uuid } from 'uuid';
import type { Adapter, LinkedConnection, LinkedConnections } from '../../ingest/runtime/connection/adapter';
import { ConnectionRefused } from '../../ingest/runtime/connection/adapter';
import { startAdapters } from '../../ingest/runtime/connection/adapters';
import type { LinkTimings } from '../../ingest/runtime/connection/link-timings';
import { createLinkLeases } from '../../ingest/runtime/connection/link-leases';
import { createTwitchAdapter } from '../../ingest/twitch/adapter';
import type { RecordEnvelope } from '../../domain/common/records';
import type { Logger } from '../../engines/log/port';
import type { Shares } from '../../engines/leases/port';
import { createPostgresShares } from '../../engines/leases/shares';
import type { Metrics } from '../../engines/metrics/port';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { ProcessSession } from '../../engines/postgres/process-session';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { RecordLog } from '../../engines/records/port';
import { createLocalWakeups } from '../../engines/wakeups/local';
import type { Wakeups } from '../../engines/wakeups/port';
import { createHttpClients } from '../../vendors/http/client';
import type { HttpClients } from '../../vendors/http/port';
import { createTwitch } from '../../vendors/twitch/api';
import { createTwitchConduits } from '../../vendors/twitch/conduits';
import { createPostgresLeases } from '../../engines/leases/postgres';
import { Conduits } from '../../ingest/twitch/conduit/conduits';
import { startConduitKeeper } from '../../ingest/twitch/conduit/keeper';
import { offerConduits } from '../../ingest/twitch/conduit/offer';
import { createShardAdapter } from '../../ingest/twitch/conduit/shard';
import { createLastKnown } from '../../ingest/twitch/last-known';
import { testParked } from './parked';
import type { FakeTwitch } from '../vendors/twitch-cloud';
import { TWITCH_CLIENT, TWITCH_SECRET } from '../vendors/twitch-cloud';

/** A worker that holds connections to the fake, on a real database. */
export interface TestWorker {
  stop(): Promise<void>;
  /** Cuts its connections as a kill does, so that it says goodbye to nobody; `stop` then frees what it has left. */
  kill(): Promise<void>;
  held(): number;
  metrics(): Promise<string>;
}

/** Connections that the test names, with tokens of the fake. */
export class TestConnections implements LinkedConnections {
  private readonly listeners = new Set<() => void>();
  readonly tokens = new Map<string, string>();
  readonly refused: { connection_id: string; reason: string }[] = [];
  /** Reports of refused connections that fail from now on. */
  failing_reports = 0;
  all: LinkedConnection[] = [];
  /** Whether its read model is behind the log. */
  behind = false;

  constructor(private readonly twitch: FakeTwitch) {}

  /** Connects a channel to an account. */
  connect(channel_id: string, scopes: readonly string[] = []): LinkedConnection & { account_id: string } {
    const connection = { connection_id: uuid(), account_id: uuid(), channel_id, client_id: TWITCH_CLIENT };
    this.tokens.set(connection.connection_id, this.twitch.tokens.give(channel_id, scopes).access_token);
    this.twitch.channel(channel_id);
    this.all = [...this.all, connection];
    this.changed();
    return connection;
  }

  disconnect({ connection_id }: LinkedConnection): void {
    this.all = this.all.filter((one) => one.connection_id !== connection_id);
    this.changed();
  }

  /** The vendor refuses its token. */
  flag({ connection_id }: LinkedConnection): void {
    this.all = this.all.map((one) => (one.connection_id === connection_id ? { ...one, flagged: true } : one));
    this.changed();
  }

  /** Its owner has logged in again. */
  clear({ connection_id }: LinkedConnection): void {
    this.all = this.all.map(({ flagged, ...one }) =>
      one.connection_id === connection_id || flagged === undefined ? one : { ...one, flagged },
    );
    this.changed();
  }

  /** Its owner asks for that, or has connected it again. */
  beginAnew({ connection_id }: LinkedConnection): void {
    const since = uuid();
    this.all = this.all.map((one) => (one.connection_id === connection_id ? { ...one, since } : one));
    this.changed();
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }

  list(): Promise<readonly LinkedConnection[]> {
    return Promise.resolve(this.all);
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  token({ connection_id }: LinkedConnection, refused?: string): Promise<string> {
    const token = this.tokens.get(connection_id);
    if (token === undefined || token === refused) return Promise.reject(new ConnectionRefused('no_token'));
    return Promise.resolve(token);
  }
}

export const QUICK: Partial<LinkTimings> = {
  retry: { first_ms: 20, most_ms: 100 },
  look_ms: 20,
  read_on_ms: 300,
  handover_ms: 3_000,
  refused_ms: 200,
};

export interface WorkerOptions {
  db: Database;
  url: string;
  twitch: Pick<FakeTwitch, 'base_url' | 'eventsub_url'>;
  /** Of other vendors, beside Twitch. */
  beside?: (http: HttpClients) => readonly Adapter[];
  /** What it looks at, beside what it holds. */
  watching?: (parts: { http: HttpClients; shares: Shares; metrics: Metrics }) => { stop(): Promise<void> };
  connections: LinkedConnections &
    Pick<TestConnections, 'token' | 'refused'> &
    Partial<Pick<TestConnections, 'failing_reports'>> &
    Partial<Pick<TestConnections, 'behind'>>;
  records: Pick<RecordLog, 'append'>;
  log: Logger;
  timings?: Partial<LinkTimings>;
  stop_within_ms?: number;
  wakeups?: Wakeups;
  heartbeat_ms?: number;
  /** Receives over a conduit with so many shards. */
  conduit_shards?: number;
  /** {@link KeeperTimings.paused_ms}. */
  conduit_paused_ms?: number;
}

/** The same, until the signal: then every call fails. */
function cutAfter<T extends object>(whole: T, signal: AbortSignal): T {
  return new Proxy(whole, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]): unknown =>
        signal.aborted ? Promise.reject(new Error('the process was killed')) : value.apply(target, given);
    },
  });
}

const CONDUIT_LOOK_MS = 100;
const KEEPER_TIMINGS = { check_ms: 200, apart_ms: 50, sweep_ms: 500, confirm_ms: 300, paused_ms: 3_600_000 };

/** The conduit of the fake's app, as `bin/` opens it. */
function startConduits(
  { db, twitch, connections, log, conduit_shards, conduit_paused_ms = KEEPER_TIMINGS.paused_ms }: WorkerOptions,
  wakeups: Wakeups,
  http: HttpClients,
  metrics: Metrics,
  shares: Shares,
) {
  const offer = offerConduits(shares);
  const { base_url } = twitch;
  const conduits = new Conduits({
    ...{ db, wakeups, connections, log, look_ms: CONDUIT_LOOK_MS },
    twitch: createTwitchConduits(http, { api_url: base_url, id_url: base_url }),
    app: () => Promise.resolve({ client_id: TWITCH_CLIENT, client_secret: TWITCH_SECRET }),
  }).start();
  const leases = createPostgresLeases({ db, log, ttl_ms: 2_000 });
  const keeper = startConduitKeeper({
    conduits,
    leases,
    shard_count: conduit_shards!,
    metrics,
    connectionsBehind: () => Promise.resolve(connections.behind ?? false),
    timings: { ...KEEPER_TIMINGS, paused_ms: conduit_paused_ms },
  });
  return {
    conduits,
    async stop() {
      await keeper.stop();
      await conduits.stop();
      await offer.stop();
    },
  };
}

/** What a process with the role `worker` runs, over engines of its own. */
export function startWorker(options: WorkerOptions): TestWorker {
  const { url, connections, log, timings = QUICK, stop_within_ms } = options;
  const dead = new AbortController();
  const db = cutAfter(options.db, dead.signal);
  const records = cutAfter(options.records, dead.signal);
  const twitch = options.twitch;
  const { wakeups = createLocalWakeups(), heartbeat_ms = 100, beside = () => [], watching } = options;
  const metrics = createPrometheusMetrics({ service: 'lumio', env: 'test' });
  const session = new ProcessSession({ connectionString: url }, log);
  const shares = createPostgresShares({ db, session, wakeups, log, heartbeat_ms });
  const http = createHttpClients({ metrics, allow_loopback: true });
  const { base_url, eventsub_url } = twitch;
  const addresses = { api_url: base_url, id_url: base_url, eventsub_url, allow_loopback: true };
  const client = createTwitch(http, addresses);
  const refused = ({ connection_id }: LinkedConnection, reason: string): Promise<void> => {
    if ((connections.failing_reports ?? 0) > 0) {
      connections.failing_reports! -= 1;
      return Promise.reject(new Error('the report is not stored'));
    }
    connections.refused.push({ connection_id, reason });
    return Promise.resolve();
  };
  const conduit =
    options.conduit_shards === undefined ? null : startConduits({ ...options, db }, wakeups, http, metrics, shares);
  const { conduits } = conduit ?? {};
  const adapter = createTwitchAdapter({
    ...{ twitch: client, client_id: TWITCH_CLIENT, conduits, metrics },
    lastKnown: createLastKnown(db),
  });
  const shards = conduits ? [createShardAdapter({ conduits, twitch: client, refused }) as Adapter] : [];
  const running = startAdapters({
    adapters: [adapter as Adapter, ...shards, ...beside(http)],
    connections,
    token: (connection, refused_token) => connections.token(connection, refused_token),
    refused,
    shares,
    leases: createLinkLeases(db, session),
    records: records as RecordLog,
    parked: testParked(db),
    log,
    metrics,
    timings,
    stop_within_ms,
    look_every_ms: 500,
  });
  const watch = watching?.({ http, shares, metrics });
  return {
    held: () => running.held(),
    metrics: () => metrics.render(),
    async kill() {
      dead.abort();
      await Promise.all([session.close(), http.close()]);
    },
    async stop() {
      await Promise.all([running.stop(), watch?.stop()]);
      await conduit?.stop();
      await shares.close();
      if (dead.signal.aborted) return;
      await session.close();
      await http.close();
    },
  };
}

/** A log of records in memory, for what need not be durable: it fails on demand. */
export class MemoryRecords implements Pick<RecordLog, 'append'> {
  readonly records: RecordEnvelope[] = [];
  away: Error | null = null;
  refused = 0;

  append(_topic: string, records: readonly RecordEnvelope[]) {
    if (this.away) {
      this.refused += 1;
      return Promise.reject(this.away);
    }
    this.records.push(...records);
    return Promise.resolve(new Map());
  }

  of(type: string): RecordEnvelope[] {
    return this.records.filter((record) => record.type === type);
  }

  /** Records of a type that the ledger counts: the first one of each external id of an account. */
  counted(type: string): RecordEnvelope[] {
    const firsts = new Map<string, RecordEnvelope>();
    for (const record of this.of(type)) {
      const key = `${record.account_id} ${record.external_id ?? record.id}`;
      if (!firsts.has(key)) firsts.set(key, record);
    }
    return [...firsts.values()];
  }
}

export interface LinkRow {
  status: string;
  detail: string | null;
  token: number;
  state: { known?: { stream: string | null } } | null;
  missed_detail: string | null;
  missed_from: string | null;
  missed_to: string | null;
}

/** How a connection is, as the database shows it. */
export async function linkOf(db: Queryable, { connection_id }: LinkedConnection): Promise<LinkRow | undefined> {
  const [row] = await db.query('select * from adapter_links where connection_id = $1', [connection_id]);
  return row as LinkRow | undefined;
}
