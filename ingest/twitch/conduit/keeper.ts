import { type Leases, WORK_CHANGED } from '../../../engines/leases/port';
import type { Gauge, Metrics } from '../../../engines/metrics/port';
import { Signal } from '../../../lib/async/signal';
import type { Conduit } from '../../../vendors/twitch/port';
import type { OAuthApp } from '../../../vendors/oauth/port';
import { Comparison } from './comparison';
import { CONDUIT_LOST, type Conduits } from './conduits';
import { ListCheck } from './list-check';
import { listedAtTwitch } from './listed';
import type { KeptConduit } from './store';

export interface KeeperOptions {
  conduits: Conduits;
  leases: Pick<Leases, 'campaign'>;
  shard_count: number;
  metrics: Metrics;
  /** Whether the list may lack connections, because their read model has not applied all events. */
  connectionsBehind(): Promise<boolean>;
  timings?: Partial<KeeperTimings>;
}

export interface KeeperTimings {
  /** Interval of the check at Twitch whether the conduit exists, and over which sockets it receives. */
  check_ms: number;
  /** Shortest time between two checks. */
  apart_ms: number;
  /** Interval at which all subscriptions are compared with Twitch's. */
  sweep_ms: number;
  /** How long a conduit is kept while a worker receives over sockets alone; Twitch itself ends it after 72 hours. */
  paused_ms: number;
  /** Time after which a much shorter list of channels is believed. */
  confirm_ms: number;
}

const TIMINGS: KeeperTimings = {
  ...{ check_ms: 60_000, apart_ms: 5_000, sweep_ms: 60 * 60_000 },
  ...{ confirm_ms: 10 * 60_000, paused_ms: 6 * 60 * 60_000 },
};
const LEASE = 'twitch-conduit';
/** Maximum subscriptions ended per check. */
const MAX_ENDED = 100;
const FOREIGN =
  'another installation receives over the Twitch conduit: its database is a copy of this one, or this one is';

/**
 * Maintains the app's single conduit: makes it, recovers it, compares it with Twitch. One process does this at a time.
 */
export function startConduitKeeper(options: KeeperOptions): { stop(): Promise<void> } {
  const { conduits, leases } = options;
  const { wakeups, connections, log } = conduits.deps;
  const asked = new Signal();
  const members = new Signal();
  const ends = [
    wakeups.on(CONDUIT_LOST, asked.raise),
    wakeups.on(WORK_CHANGED, () => void membersChanged()),
    connections.onChange(() => {
      // The first channel of the app needs a conduit at once.
      if (conduits.current === null) asked.raise();
    }),
  ];
  const shards = options.metrics.gauge(
    'lumio_twitch_conduit_shards',
    'Shards of the Twitch conduit, as Twitch last said',
    ['which'],
  );
  let has_socket_workers: boolean | undefined;

  async function membersChanged(): Promise<void> {
    try {
      const now = await conduits.store.hasSocketWorkers();
      if (now === has_socket_workers) return;
      has_socket_workers = now;
      members.raise();
      asked.raise();
    } catch (error) {
      log.warn({ err: error }, 'the workers without Twitch conduits could not be read; the next check reads them');
    }
  }

  const timings = { ...TIMINGS, ...options.timings };
  const { check_ms, apart_ms } = timings;
  const campaign = leases.campaign(LEASE, async ({ signal }) => {
    const keeper = new Keeper(conduits, options, timings, shards, signal);
    while (!signal.aborted) {
      asked.clear();
      members.clear();
      await keeper.check().catch((error: unknown) => {
        log.warn({ err: error }, 'the Twitch conduit could not be checked; it is tried again');
      });
      // A new worker without conduits subscribes within seconds.
      if (await members.wait(apart_ms, signal)) continue;
      await asked.wait(check_ms, signal);
    }
  });
  return {
    async stop() {
      for (const end of ends) end();
      await campaign.stop();
    },
  };
}

class Keeper {
  private readonly comparison: Comparison;
  /** Connected as the check has listed them. */
  private channel_ids: readonly string[] = [];
  private readonly lists: ListCheck;
  private is_foreign = false;

  constructor(
    private readonly conduits: Conduits,
    private readonly options: Pick<KeeperOptions, 'shard_count' | 'connectionsBehind'>,
    private readonly timings: Pick<KeeperTimings, 'sweep_ms' | 'confirm_ms' | 'paused_ms'>,
    private readonly shards: Gauge,
    private readonly signal: AbortSignal,
  ) {
    this.lists = new ListCheck(timings.confirm_ms);
    this.comparison = new Comparison(conduits, timings.sweep_ms, signal);
  }

  async check(): Promise<void> {
    const { store, deps, channels } = this.conduits;
    const app = await deps.app();
    if (app === null) return;
    const is_complete = !(await this.options.connectionsBehind());
    await channels.list(app.client_id);
    this.channel_ids = channels.ids;
    const is_believed = this.lists.isConfirmed(this.channel_ids.length, is_complete, performance.now());
    await store.forgetFormerApps(app.client_id);
    const kept = await store.conduit(app.client_id);
    if (await store.hasSocketWorkers()) return kept === null ? undefined : this.pause(app, kept);
    if (kept?.is_paused) await this.resume(kept);
    const is_wanted = channels.ids.length > 0;
    if (kept === null && !is_wanted) return;
    const began_at = performance.now();
    const listed = await deps.twitch.list(app);
    const found = listed.find(({ id }) => id === kept?.id);
    if (found === undefined) return is_wanted ? this.make(app, listed, kept?.id ?? null) : undefined;
    const shards = (await deps.twitch.shards(app, found.id)) ?? [];
    const connected = shards.filter(({ enabled, session_id }) => enabled && session_id !== null);
    this.shards.set(shards.length, { which: 'all' });
    this.shards.set(connected.length, { which: 'connected' });
    const sessions = Object.fromEntries(connected.map(({ id, session_id }) => [id, session_id!]));
    if (await this.isForeign(found, Object.values(sessions))) return store.checked(found, sessions, began_at);
    const conduit = await this.resized(app, found);
    await store.checked(conduit, sessions, began_at);
    const ended = is_believed && (await this.comparison.run(app, conduit, this.connected()));
    if (is_believed) await this.endStrangers(app, conduit);
    const is_other = conduit.shard_count !== kept?.shard_count;
    const is_lost = shards.some(({ id, session_id }) => kept?.sessions[id] !== (session_id ?? undefined));
    if (ended || is_other || is_lost) this.conduits.announce();
  }

  /**
   * Whether another installation receives over the conduit: then nothing of it is changed at Twitch. A copy of the
   * database knows the same conduit, and lacks channels that were connected after the copy was made.
   */
  private async isForeign(conduit: Conduit, sessions: readonly string[]): Promise<boolean> {
    const { store, deps } = this.conduits;
    const foreign = await store.foreign(sessions, conduit);
    this.shards.set(foreign.size, { which: 'foreign' });
    // A worker that has just opened a session may not have stored it yet.
    const was_foreign = this.is_foreign;
    this.is_foreign = foreign.size > 0;
    if (this.is_foreign && was_foreign) deps.log.warn({ conduit_id: conduit.id, shards: foreign.size }, FOREIGN);
    return this.is_foreign;
  }

  /**
   * Closes the shards, because a worker that receives over sockets alone would receive its channels a second time. The
   * subscriptions stay for some hours: that worker may leave soon.
   */
  private async pause(app: OAuthApp, kept: KeptConduit): Promise<void> {
    const { store, deps } = this.conduits;
    const { id: conduit_id } = kept;
    const paused_ms = await store.pause(conduit_id);
    if (!kept.is_paused) {
      deps.log.warn({ conduit_id }, 'the Twitch conduit is paused: a worker receives channels over sockets alone');
      for (const which of ['all', 'connected']) this.shards.set(0, { which });
      this.conduits.announce();
    }
    if (paused_ms < this.timings.paused_ms) return;
    const shards = (await deps.twitch.shards(app, conduit_id)) ?? [];
    const sessions = shards.flatMap(({ enabled, session_id }) => (enabled && session_id) || []);
    if (await this.isForeign(kept, sessions)) return;
    await deps.twitch.remove(app, conduit_id);
    await store.abandon(conduit_id);
    deps.log.warn({ conduit_id }, 'the Twitch conduit has ended: a worker receives channels over sockets alone');
  }

  private async resume({ id: conduit_id }: Conduit): Promise<void> {
    const { store, deps } = this.conduits;
    await store.resume(conduit_id);
    // Twitch may have ended subscriptions meanwhile.
    this.comparison.repeat();
    deps.log.info({ conduit_id }, 'the Twitch conduit receives again: every worker uses it');
    this.conduits.announce();
  }

  /** Adopts the conduit that an earlier process requested, or makes a new one. */
  private async make(app: OAuthApp, listed: readonly Conduit[], lost: string | null): Promise<void> {
    const { store, deps } = this.conduits;
    const { client_id } = app;
    const others = lost === null ? await store.beingMade(client_id) : null;
    const found = others === null ? undefined : listed.find(({ id }) => !others.has(id));
    if (found === undefined) {
      if (lost !== null) deps.log.warn({ conduit_id: lost }, 'Twitch has ended the conduit: another one is made');
      const ids = listed.map(({ id }) => id);
      if (this.signal.aborted || !(await store.beginMaking(client_id, lost, ids))) return;
    }
    const conduit = found ?? (await deps.twitch.make(app, this.options.shard_count));
    if (!(await store.made(client_id, conduit))) return deps.twitch.remove(app, conduit.id);
    deps.log.info({ conduit_id: conduit.id, shards: conduit.shard_count }, 'the app has a Twitch conduit');
    if (lost !== null) await store.forgetAll(lost);
    this.conduits.announce();
  }

  private async resized(app: OAuthApp, found: Conduit): Promise<Conduit> {
    if (found.shard_count === this.options.shard_count) return found;
    const wanted = { id: found.id, shard_count: this.options.shard_count };
    return (await this.conduits.deps.twitch.resize(app, wanted)) ? wanted : found;
  }

  /** Channels of the check's list, and those that later lists have added. */
  private connected(): ReadonlySet<string> {
    return new Set([...this.channel_ids, ...this.conduits.channels.ids]);
  }

  /** Ends subscriptions of channels that are no longer connected. */
  private async endStrangers(app: OAuthApp, conduit: Conduit): Promise<void> {
    const { store, deps } = this.conduits;
    const { id } = conduit;
    for (const one of await store.strangers(id, [...this.connected()], MAX_ENDED)) {
      const { channel_id, name, asked } = one;
      // An unanswered request may have made it; without a row the comparison would leave it at Twitch.
      const listed = asked ? await listedAtTwitch(deps.twitch, { app, conduit }, channel_id) : null;
      const subscription_id = one.subscription_id ?? listed?.get(name)?.subscription_id ?? null;
      if (subscription_id !== null) await deps.twitch.unsubscribe(app, subscription_id);
      await store.forget(id, one);
    }
  }
}
