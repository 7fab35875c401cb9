import type { Logger } from '../../../engines/log/port';
import type { Database } from '../../../engines/postgres/port';
import type { Wakeups } from '../../../engines/wakeups/port';
import { retry } from '../../../lib/async/retry';
import { Signal } from '../../../lib/async/signal';
import type { TwitchConduits } from '../../../vendors/twitch/port';
import type { OAuthApp } from '../../../vendors/oauth/port';
import type { LinkedConnection, LinkedConnections } from '../../runtime/connection/adapter';
import { ConduitChannels } from './channels';
import { ChannelCoverage } from './coverage';
import { CallBudget } from '../call-budget';
import { listedAtTwitch } from './listed';
import { ConduitStore, type KeptConduit, type KeptSubscription, SHARD_KIND } from './store';

export interface ConduitsDeps {
  db: Database;
  wakeups: Wakeups;
  /** Connected channels of all accounts. */
  connections: LinkedConnections;
  twitch: TwitchConduits;
  /** The installation's app; null while there is none. */
  app(): Promise<OAuthApp | null>;
  log: Logger;
  /** How often each process reads what has changed without a wakeup. Default 15 s. */
  look_ms?: number;
}

/** The conduit that channels of the installation's app are received over. */
export interface CurrentConduit {
  app: OAuthApp;
  conduit: KeptConduit;
}

/** Sent after a change of the conduit or of its subscriptions. */
export const CONDUIT_CHANGED = 'twitch-conduit';
/** Sent when Twitch does not know the conduit any more. */
export const CONDUIT_LOST = 'twitch-conduit-lost';
const LOOK_MS = 15_000;
const ANNOUNCE_MS = 1_000;
/** All processes share the app's bucket of some 800 calls a minute; shards must not wait for subscriptions. */
const BUDGET = { at_once: 4, reserve: 100 };
const LIST_RETRY = { first_ms: 250, most_ms: 4_000, tries: 4, passing: () => true };

/** View of the conduit in one process: its shards, its channels, and changes. */
export class Conduits {
  readonly store: ConduitStore;
  readonly channels: ConduitChannels;
  readonly budget = new CallBudget(BUDGET);
  current: CurrentConduit | null = null;
  private readonly open = new Set<ChannelCoverage>();
  private readonly listeners = new Set<() => void>();
  private readonly lookers = new Set<() => void>();
  /** Time until which the lost conduit received, by connection; Unix milliseconds. */
  private readonly lost = new Map<string, number>();
  private list_is_old = true;
  private listed_at = -Infinity;
  private readonly changed = new Signal();
  private readonly stopping = new AbortController();
  private readonly ends: (() => void)[] = [];
  /** Time of the database up to which changes of subscriptions are known. */
  private read_to: string | null = null;
  private announced_at = -Infinity;
  private announcing: NodeJS.Timeout | undefined;
  private watching: Promise<void> = Promise.resolve();
  private first: Promise<void> | undefined;

  constructor(readonly deps: ConduitsDeps) {
    this.store = new ConduitStore(deps.db);
    this.channels = new ConduitChannels(deps.connections);
  }

  start(): this {
    const { wakeups, connections } = this.deps;
    const onConnections = () => {
      this.list_is_old = true;
      this.changed.raise();
    };
    this.ends.push(wakeups.on(CONDUIT_CHANGED, this.changed.raise), connections.onChange(onConnections));
    this.watching = this.watch();
    return this;
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    for (const end of this.ends) end();
    if (this.announcing !== undefined) this.announceNow();
    await this.watching;
  }

  /** Connections of the shards, held like any other. */
  readonly shards: LinkedConnections = {
    list: () => Promise.resolve(this.current === null ? [] : shardsOf(this.current.conduit)),
    onChange: (listener) => {
      this.listeners.add(listener);
      return () => this.listeners.delete(listener);
    },
  };

  /**
   * Returns null when the conduit does not receive the channel of this connection: it is another app's, or there is no
   * conduit.
   */
  async coverageOf(connection: LinkedConnection): Promise<ChannelCoverage | null> {
    await this.begun();
    const { current } = this;
    if (current === null || !this.serves(connection)) return null;
    const kept = await this.subscriptionsOf(current, connection.channel_id);
    const coverage = new ChannelCoverage(this, current, connection, kept, () => this.open.delete(coverage));
    this.open.add(coverage);
    return coverage;
  }

  /**
   * Reads the channel's subscriptions; those whose answer a killed process did not store are looked up at Twitch, so
   * that a socket does not receive them, too.
   */
  private async subscriptionsOf(current: CurrentConduit, channel_id: string): Promise<KeptSubscription[]> {
    const { id } = current.conduit;
    const rows = await this.store.subscriptions(id, channel_id);
    const kept = rows.map(({ asked: _, ...one }) => one);
    const unknown = rows.filter(({ asked }) => asked);
    if (unknown.length === 0) return kept;
    const found = await retry(() => listedAtTwitch(this.deps.twitch, current, channel_id), LIST_RETRY);
    const changes = unknown.flatMap(({ name }) => found.get(name) ?? []);
    await this.store.write(id, channel_id, changes);
    return [...kept, ...changes.map((change) => ({ ...change, channel_id }))];
  }

  /** Calls `looked` after each read of changes; returns the unsubscribe function. */
  onLook(looked: () => void): () => void {
    this.lookers.add(looked);
    return () => this.lookers.delete(looked);
  }

  /** Whether the channel of this connection may be received over the conduit from now on. */
  serves({ client_id }: LinkedConnection): boolean {
    const { current } = this;
    return current !== null && current.conduit.receives && client_id === current.app.client_id;
  }

  /** Stores the time until which the channel of a connection was received, for the next session. */
  noteLost({ connection_id }: LinkedConnection, alive_at: number | null): void {
    if (alive_at !== null) this.lost.set(connection_id, alive_at);
  }

  /** Returns and clears that time, Unix milliseconds; null when the conduit was not lost. */
  takeLost({ connection_id }: LinkedConnection): number | null {
    const at = this.lost.get(connection_id) ?? null;
    this.lost.delete(connection_id);
    return at;
  }

  /** Signals a change to the other processes and to this one, at most once per {@link ANNOUNCE_MS}. */
  announce(): void {
    if (this.announcing !== undefined) return;
    const wait_ms = this.announced_at + ANNOUNCE_MS - performance.now();
    if (wait_ms <= 0) this.announceNow();
    else this.announcing = setTimeout(() => this.announceNow(), wait_ms);
  }

  private announceNow(): void {
    clearTimeout(this.announcing);
    [this.announcing, this.announced_at] = [undefined, performance.now()];
    this.changed.raise();
    this.deps.wakeups.notify(CONDUIT_CHANGED);
  }

  /**
   * Reads the changes.
   * @throws the database's error
   */
  async look(): Promise<void> {
    const app = await this.deps.app();
    const conduit = app === null ? null : await this.store.conduit(app.client_id);
    const before = this.current;
    if (app === null || conduit === null || conduit.is_paused) {
      this.current = null;
    } else {
      await this.list(app.client_id, before);
      if (before?.conduit.id !== conduit.id) this.read_to = null;
      this.current = { app, conduit };
      const { rows, next } = await this.store.changed(conduit.id, this.read_to);
      this.read_to = next;
      const by_channel = new Map<string, KeptSubscription[]>();
      for (const row of rows) {
        const group = by_channel.get(row.channel_id);
        if (group === undefined) by_channel.set(row.channel_id, [row]);
        else group.push(row);
      }
      for (const coverage of this.open) coverage.apply(by_channel.get(coverage.channel_id) ?? []);
    }
    for (const coverage of this.open) coverage.onConduit(this.current?.conduit ?? null);
    const [was, is] = [before?.conduit, this.current?.conduit];
    if (was?.id !== is?.id || was?.shard_count !== is?.shard_count)
      for (const listener of [...this.listeners]) listener();
    for (const looked of [...this.lookers]) looked();
  }

  private async list(client_id: string, before: CurrentConduit | null): Promise<void> {
    const fresh = performance.now() - this.listed_at < (this.deps.look_ms ?? LOOK_MS);
    if (fresh && !this.list_is_old && before?.app.client_id === client_id) return;
    [this.list_is_old, this.listed_at] = [false, performance.now()];
    await this.channels.list(client_id).catch((error: unknown) => {
      this.list_is_old = true;
      throw error;
    });
  }

  /** Resolves after the first read: channels are received over sockets while no conduit is known. */
  private begun(): Promise<void> {
    this.first ??= this.looked();
    return this.first;
  }

  private async looked(): Promise<void> {
    try {
      await this.look();
    } catch (error) {
      this.deps.log.warn({ err: error }, 'the Twitch conduit could not be read; it is tried again');
    }
  }

  private async watch(): Promise<void> {
    const { signal } = this.stopping;
    await this.begun();
    while (!signal.aborted) {
      await this.changed.wait(this.deps.look_ms ?? LOOK_MS, signal);
      if (!signal.aborted) await this.looked();
    }
  }
}

/** @returns the shards of a conduit; those of another conduit have other names. */
function shardsOf({ id, shard_count }: KeptConduit): LinkedConnection[] {
  return Array.from({ length: shard_count }, (_, shard) => ({
    ...{ kind: SHARD_KIND, connection_id: `${id}.${shard}`, account_id: null, channel_id: String(shard) },
  }));
}
