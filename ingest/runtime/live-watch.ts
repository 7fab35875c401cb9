import { createHash } from 'node:crypto';
import { ReconnectRequired, TokenAway } from '../../access/connection-tokens';
import type { LivingConnection, LivingConnections } from '../../access/living-connections';
import { TOPICS } from '../../domain/records';
import { SAMPLE_EVERY_MS, SAMPLE_TYPE, type StreamSample } from '../../domain/stream-samples';
import type { Platform } from '../../domain/vendors';
import type { Shares } from '../../engines/leases/port';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import { type Queryable, textArray } from '../../engines/postgres/port';
import { failureKind } from '../../kernel/failures';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { pause } from '../../kernel/signal';
import { HttpFailed } from '../../vendors/http/port';
import type { createIntake } from './intake';
import { storableJson } from './text';
import { type DraftRecord, externalId } from './webhook';

/** A channel that is looked at; its token was given to the app `client_id`. */
export type WatchedChannel = LivingConnection & { client_id: string };

/** A broadcast that is on air, as its platform shows it. */
export interface Broadcast extends Omit<StreamSample, 'viewer_count'> {
  /** Null where the platform does not tell now: no sample is taken. */
  viewer_count: number | null;
  /** RFC 3339; null where the platform does not tell. */
  started_at: string | null;
  /** What is stored as the event of its going live; of its going offline too, beside when. */
  raw: object;
}

/** What a look at one channel has shown. */
export interface SeenChannel {
  broadcasts: readonly Broadcast[];
  /** Broadcasts of which the platform says that they are over; others are believed to be when they are gone twice. */
  over: readonly { broadcast_id: string; ended_at: string }[];
}

/** How one platform is asked what is on air. */
export interface LiveLook {
  readonly platform: Platform;
  /** Most channels of one look. */
  readonly most: number;
  readonly every_ms: number;
  /** Whether its looks tell of going live and offline. Twitch pushes that. */
  readonly turns: boolean;
  /**
   * Channels that could not be looked at are left out. `online`: the broadcasts that are known to be on air.
   * @throws HttpFailed and others where none could
   */
  look(
    channels: readonly WatchedChannel[],
    online: ReadonlyMap<string, readonly string[]>,
  ): Promise<Map<string, SeenChannel>>;
}

export interface LiveWatchDeps {
  looks: readonly LiveLook[];
  living: LivingConnections;
  db: Queryable;
  shares: Pick<Shares, 'offer'>;
  intake: Pick<ReturnType<typeof createIntake>, 'store'>;
  log: Logger;
  metrics: Metrics;
  /** Into how many pieces of work a platform's channels are divided among processes. Default 4. */
  pieces?: number;
  /** For tests. Default: the looks' own. */
  every_ms?: number;
}

/**
 * Looks at all connected channels, shared out among the processes: what has gone live or offline since is stored as an
 * event, and each minute the figures of what is on air as a sample. Whoever looks twice stores the same: events are
 * known by the broadcast, samples by broadcast and minute.
 */
export function startLiveWatch(deps: LiveWatchDeps): { stop(): Promise<void> } {
  const { looks, shares, pieces = 4 } = deps;
  const campaigns = looks.flatMap((look) =>
    Array.from({ length: pieces }, (_, piece) => {
      const watch = new Watch(look, piece, pieces, deps);
      return shares.offer(`live-watch:${look.platform}:${piece}`, (signal) => watch.run(signal));
    }),
  );
  return { stop: async () => void (await Promise.all(campaigns.map((campaign) => campaign.stop()))) };
}

interface OnlineRow {
  account_id: string;
  broadcast_id: string;
}

/** One piece of the channels of one platform. */
class Watch {
  /** Broadcasts that were gone at the last look, which may be mistaken: by connection. */
  private readonly gone = new Map<string, ReadonlySet<string>>();
  /** The minute of each broadcast's last sample. */
  private sampled = new Map<string, number>();
  private readonly failures;

  constructor(
    private readonly look: LiveLook,
    private readonly piece: number,
    private readonly pieces: number,
    private readonly deps: LiveWatchDeps,
  ) {
    this.failures = deps.metrics.counter('lumio_live_looks_failed_total', 'Looks at live channels that failed', [
      'platform',
    ]);
  }

  async run(signal: AbortSignal): Promise<void> {
    const every_ms = this.deps.every_ms ?? this.look.every_ms;
    while (!signal.aborted) {
      const begun = performance.now();
      let wait_ms = every_ms;
      try {
        await this.once(signal);
      } catch (error) {
        if (signal.aborted) return;
        const { platform } = this.look;
        this.failures.inc(1, { platform });
        const level = isPassing(error) ? 'info' : 'error';
        this.deps.log[level]({ err: error, platform }, 'live channels could not be looked at; it is tried again');
        if (error instanceof HttpFailed) wait_ms = Math.max(wait_ms, error.retry_after_ms ?? 0);
      }
      // Processes that begin together do not ask together.
      await pause(Math.max(0, wait_ms * (0.9 + Math.random() / 10) - (performance.now() - begun)), signal);
    }
  }

  private async once(signal: AbortSignal): Promise<void> {
    const channels = (await this.deps.living.of(this.look.platform)).filter((one) => this.isMine(one));
    const living = new Set(channels.map(({ connection_id }) => connection_id));
    for (const id of this.gone.keys()) if (!living.has(id)) this.gone.delete(id);
    if (channels.length === 0) return;
    const online = await this.online(channels);
    let failed: { error: unknown } | null = null;
    for (const batch of batches(channels as WatchedChannel[], this.look.most)) {
      if (signal.aborted) return;
      try {
        await this.batch(batch, online);
      } catch (error) {
        // One app's trouble is none of the others'.
        failed ??= { error };
      }
    }
    if (failed !== null) throw failed.error;
  }

  private isMine({ kind, client_id, connection_id }: LivingConnection): boolean {
    if (kind !== 'channel' || client_id === null) return false;
    return createHash('sha1').update(connection_id).digest().readUInt32BE(0) % this.pieces === this.piece;
  }

  private async online(channels: readonly LivingConnection[]): Promise<Map<string, string[]>> {
    const rows = await this.deps.db.query<OnlineRow & Record<string, unknown>>(
      `select account_id::text, broadcast_id from channel_status
       where platform = $1 and is_online and account_id = any ($2::text[]::uuid[])`,
      [this.look.platform, textArray(channels.map(({ account_id }) => account_id))],
      'live-watch-online',
    );
    const online = new Map<string, string[]>();
    for (const { account_id, broadcast_id } of rows) {
      online.set(account_id, [...(online.get(account_id) ?? []), broadcast_id]);
    }
    return online;
  }

  private async batch(
    channels: readonly WatchedChannel[],
    online: ReadonlyMap<string, readonly string[]>,
  ): Promise<void> {
    const looked = await this.look.look(channels, online);
    const now = Date.now();
    const drafts: DraftRecord[] = [];
    for (const channel of channels) {
      const seen = looked.get(channel.connection_id);
      if (seen === undefined) continue;
      const known = online.get(channel.account_id) ?? [];
      if (this.look.turns) drafts.push(...this.turns(channel, seen, known, now));
      drafts.push(...this.samples(channel, seen, now));
    }
    if (drafts.length > 0) await this.store(drafts, now);
    this.sampled = new Map([...this.sampled].filter(([, minute]) => minute >= now - 2 * SAMPLE_EVERY_MS));
  }

  /** What one channel shows may be too large to be stored: that is none of the others' trouble. */
  private async store(drafts: readonly DraftRecord[], now: number): Promise<void> {
    const stored = await this.deps.intake.store(drafts, now, null);
    if (stored.kind !== 'park') return;
    if (drafts.length > 1) return void (await Promise.all(drafts.map((draft) => this.store([draft], now))));
    const { reason, detail } = stored;
    this.deps.log.warn({ platform: this.look.platform, reason, detail }, 'what a channel shows cannot be stored');
  }

  private turns(channel: WatchedChannel, seen: SeenChannel, known: readonly string[], now: number): DraftRecord[] {
    const { platform } = this.look;
    const turn = (name: string, id: string, occurred_at: string, raw: object): DraftRecord => ({
      owner: { kind: 'account', account_id: channel.account_id },
      topic: TOPICS.platform_events,
      type: `${platform}:${name}`,
      platform,
      external_id: externalId(platform, name, id),
      occurred_at,
      subject: null,
      raw: storableJson(JSON.stringify(raw)),
    });
    const began = seen.broadcasts.filter(({ broadcast_id }) => !known.includes(broadcast_id));
    const drafts = began.map(({ broadcast_id, started_at, raw }) =>
      turn('stream_online', broadcast_id, started_at ?? new Date(now).toISOString(), raw),
    );
    const on_air = new Set(seen.broadcasts.map(({ broadcast_id }) => broadcast_id));
    const gone_before = this.gone.get(channel.connection_id);
    const gone = new Set<string>();
    for (const broadcast_id of known.filter((id) => !on_air.has(id))) {
      const over = seen.over.find((one) => one.broadcast_id === broadcast_id);
      if (over === undefined && !gone_before?.has(broadcast_id)) {
        gone.add(broadcast_id);
        continue;
      }
      const ended_at = over?.ended_at ?? new Date(now).toISOString();
      const raw = { id: broadcast_id, channel_id: channel.platform_channel_id, is_live: false, ended_at };
      drafts.push(turn('stream_offline', broadcast_id, ended_at, raw));
    }
    this.gone.delete(channel.connection_id);
    if (gone.size > 0) this.gone.set(channel.connection_id, gone);
    return drafts;
  }

  private samples({ account_id }: WatchedChannel, seen: SeenChannel, now: number): DraftRecord[] {
    const { platform } = this.look;
    const minute = Math.floor(now / SAMPLE_EVERY_MS) * SAMPLE_EVERY_MS;
    const at = new Date(minute).toISOString();
    return seen.broadcasts.flatMap(({ viewer_count, ...figures }) => {
      const key = `${account_id} ${figures.broadcast_id}`;
      if (viewer_count === null || this.sampled.get(key) === minute) return [];
      this.sampled.set(key, minute);
      const { broadcast_id, follower_count, title, category, tags } = figures;
      const sample: StreamSample = { broadcast_id, viewer_count, follower_count, title, category, tags };
      return {
        owner: { kind: 'account', account_id } as const,
        topic: TOPICS.stream_samples,
        type: SAMPLE_TYPE,
        platform,
        external_id: externalId(platform, 'sample', broadcast_id, at),
        occurred_at: at,
        subject: null,
        raw: storableJson(JSON.stringify(sample)),
      };
    });
  }
}

/** The vendor, its token or our database is away. */
const isPassing = (error: unknown): boolean =>
  [HttpFailed, NotSent, OutcomeUnknown, ReconnectRequired, TokenAway].some((kind) => error instanceof kind) ||
  failureKind(error) !== 'bug';

/** The channels in batches of one app each, since a token speaks for its own app alone, and of so many at most. */
function batches(channels: readonly WatchedChannel[], most: number): WatchedChannel[][] {
  const by_app = new Map<string, WatchedChannel[]>();
  for (const channel of channels) by_app.set(channel.client_id, [...(by_app.get(channel.client_id) ?? []), channel]);
  return [...by_app.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / most) }, (_, index) => all.slice(index * most, (index + 1) * most)),
  );
}
