import { createHash } from 'node:crypto';
import { ReconnectRequired, TokenUnavailable } from '../../../services/connections/connection-tokens';
import type { ActiveConnection, ActiveConnections } from '../../../services/connections/active-connections';
import { TOPICS } from '../../../domain/common/records';
import { SAMPLE_EVERY_MS, SAMPLE_TYPE, type StreamSample } from '../../../domain/history/stream-samples';
import type { Platform } from '../../../domain/common/vendors';
import type { Shares } from '../../../engines/leases/port';
import type { Logger } from '../../../engines/log/port';
import type { Metrics } from '../../../engines/metrics/port';
import { type Queryable, textArray } from '../../../engines/postgres/port';
import { failureKind } from '../../../kernel/failures';
import { NotSent, OutcomeUnknown } from '../../../kernel/job';
import { pause } from '../../../lib/async/signal';
import { HttpFailed } from '../../../vendors/http/port';
import type { createIntake } from '../webhook/intake';
import { storableJson } from '../parse/text';
import { type DraftRecord, externalId } from '../webhook/webhook';

/** A polled channel; its token was issued to the app `client_id`. */
export type WatchedChannel = ActiveConnection & { client_id: string };

/** A broadcast on air, as its platform reports it. */
export interface Broadcast extends Omit<StreamSample, 'viewer_count'> {
  /** Null when the platform does not report it now: no sample is taken. */
  viewer_count: number | null;
  /** RFC 3339; null when the platform does not report it. */
  started_at: string | null;
  /** Payload of the event of its going live; also of its going offline, together with the time. */
  raw: object;
}

/** Result of polling one channel. */
export interface SeenChannel {
  broadcasts: readonly Broadcast[];
  /** Broadcasts whose end the platform states; others are over, provisionally, when they are {@link GONE}. */
  over: readonly { broadcast_id: string; ended_at: string }[];
}

/** Reads from one platform which channels are on air. */
export interface LiveLook {
  readonly platform: Platform;
  /** Maximum channels per call. */
  readonly most: number;
  readonly every_ms: number;
  /**
   * True when its polls detect going live and offline. Twitch pushes both: its polls only correct what earlier looks
   * have inferred.
   */
  readonly turns: boolean;
  /** Id of a begin or an end, equal from every source. Default: its name and the broadcast. */
  turnId?(name: TurnName, broadcast_id: string): string;
  /**
   * Reads the channels; unreadable ones are left out. `online`: the broadcasts that are known to be on air.
   * @throws HttpFailed and others when none could be read
   */
  look(
    channels: readonly WatchedChannel[],
    online: ReadonlyMap<string, readonly string[]>,
  ): Promise<Map<string, SeenChannel>>;
}

export interface LiveWatchDeps {
  looks: readonly LiveLook[];
  living: ActiveConnections;
  db: Queryable;
  shares: Pick<Shares, 'offer'>;
  intake: Pick<ReturnType<typeof createIntake>, 'store'>;
  log: Logger;
  metrics: Metrics;
  /** Number of shares into which a platform's channels are divided among processes. Default 4. */
  pieces?: number;
  /** For tests. Default: the intervals of `looks`. */
  every_ms?: number;
  /** For tests. Default: {@link GONE}. */
  gone_ms?: number;
}

export type TurnName = 'stream_online' | 'stream_offline';

/** A broadcast is over after this number of polls without it, and this time after the first of them. */
const GONE = { looks: 3, ms: 120_000 };

interface Gone {
  /** Unix milliseconds of the first poll without the broadcast. */
  since: number;
  looks: number;
}

/**
 * Polls all connected channels, divided among the processes: stores going live and offline as events, and each minute
 * the figures of broadcasts on air as samples. A repeated poll stores the same: events are identified by the broadcast,
 * samples by broadcast and minute.
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

interface KnownRow {
  account_id: string;
  broadcast_id: string;
  is_online: boolean;
  known_by: 'report' | 'channel' | 'look';
}

/** Ids of an account's broadcasts. */
interface KnownBroadcasts {
  online: string[];
  /** Subset of `online` that only looks have found. */
  found: string[];
  /** Offline broadcasts that only looks have ended. */
  ended: string[];
}
const NONE_KNOWN: KnownBroadcasts = { online: [], found: [], ended: [] };

/** A share of the channels of one platform. */
class Watch {
  /** Known broadcasts missing from the last poll, by connection. */
  private readonly gone = new Map<string, ReadonlyMap<string, Gone>>();
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
      let not_before = 0;
      try {
        await this.once(signal);
      } catch (error) {
        if (signal.aborted) return;
        const { platform } = this.look;
        this.failures.inc(1, { platform });
        const level = isPassing(error) ? 'info' : 'error';
        this.deps.log[level]({ err: error, platform }, 'live channels could not be looked at; it is tried again');
        not_before = performance.now() + retryAfterOf(error);
      }
      // Random, so that processes that start together do not poll together.
      const next_at = begun + every_ms * (0.9 + Math.random() / 10);
      await pause(Math.max(next_at, not_before) - performance.now(), signal);
    }
  }

  private async once(signal: AbortSignal): Promise<void> {
    const channels = (await this.deps.living.of(this.look.platform)).filter((one) => this.isMine(one));
    const living = new Set(channels.map(({ connection_id }) => connection_id));
    for (const id of this.gone.keys()) if (!living.has(id)) this.gone.delete(id);
    if (channels.length === 0) return;
    const known = await this.known(channels);
    let failed: { error: unknown } | null = null;
    for (const batch of batches(channels as WatchedChannel[], this.look.most)) {
      if (signal.aborted) return;
      try {
        await this.batch(batch, known);
      } catch (error) {
        // Failures of one app do not affect the others.
        if (failed === null || retryAfterOf(error) > retryAfterOf(failed.error)) failed = { error };
      }
    }
    if (failed !== null) throw failed.error;
  }

  private isMine({ kind, client_id, connection_id }: ActiveConnection): boolean {
    if (kind !== 'channel' || client_id === null) return false;
    return createHash('sha1').update(connection_id).digest().readUInt32BE(0) % this.pieces === this.piece;
  }

  private async known(channels: readonly ActiveConnection[]): Promise<Map<string, KnownBroadcasts>> {
    const rows = await this.deps.db.query<KnownRow & Record<string, unknown>>(
      `select account_id::text, broadcast_id, is_online, known_by from channel_status
       where platform = $1 and account_id = any ($2::text[]::uuid[])
         and (is_online or known_by = 'look' and updated_at > now() - interval '3 days')`,
      [this.look.platform, textArray(channels.map(({ account_id }) => account_id))],
      'live-watch-known',
    );
    const known = new Map<string, KnownBroadcasts>();
    for (const { account_id, broadcast_id, is_online, known_by } of rows) {
      const of_account = known.get(account_id) ?? { online: [], found: [], ended: [] };
      known.set(account_id, of_account);
      if (!is_online) of_account.ended.push(broadcast_id);
      else of_account.online.push(broadcast_id);
      if (is_online && known_by === 'look') of_account.found.push(broadcast_id);
    }
    return known;
  }

  private async batch(channels: readonly WatchedChannel[], known: ReadonlyMap<string, KnownBroadcasts>): Promise<void> {
    const online = new Map([...known].map(([account_id, broadcasts]) => [account_id, broadcasts.online]));
    const looked = await this.look.look(channels, online);
    const now = Date.now();
    const drafts: DraftRecord[] = [];
    for (const channel of channels) {
      const seen = looked.get(channel.connection_id);
      if (seen === undefined) continue;
      drafts.push(...this.turns(channel, seen, known.get(channel.account_id) ?? NONE_KNOWN, now));
      drafts.push(...this.samples(channel, seen, now));
    }
    if (drafts.length > 0) await this.store(drafts, now);
    this.sampled = new Map([...this.sampled].filter(([, minute]) => minute >= now - 2 * SAMPLE_EVERY_MS));
  }

  /** A channel's figures may be too large to store: that must not affect the others. */
  private async store(drafts: readonly DraftRecord[], now: number): Promise<void> {
    const stored = await this.deps.intake.store(drafts, now, null);
    if (stored.kind !== 'park') return;
    if (drafts.length > 1) return void (await Promise.all(drafts.map((draft) => this.store([draft], now))));
    const { reason, detail } = stored;
    this.deps.log.warn({ platform: this.look.platform, reason, detail }, 'what a channel shows cannot be stored');
  }

  private turns(channel: WatchedChannel, seen: SeenChannel, known: KnownBroadcasts, now: number): DraftRecord[] {
    const { platform, turns } = this.look;
    const looked_at = new Date(now).toISOString();
    const turn = (name: TurnName, broadcast_id: string, occurred_at: string, raw: object): DraftRecord => ({
      owner: { kind: 'account', account_id: channel.account_id },
      topic: TOPICS.platform_events,
      type: `${platform}:${name}`,
      platform,
      external_id: externalId(platform, this.look.turnId?.(name, broadcast_id) ?? `${name}:${broadcast_id}`),
      occurred_at,
      subject: null,
      raw: storableJson(JSON.stringify(raw)),
    });
    const began = seen.broadcasts.filter(({ broadcast_id }) =>
      turns ? !known.online.includes(broadcast_id) : known.ended.includes(broadcast_id),
    );
    const drafts = began.map(({ broadcast_id, started_at, raw }): DraftRecord => ({
      ...turn('stream_online', broadcast_id, started_at ?? looked_at, raw),
      seen_at: looked_at,
    }));
    const on_air = new Set(seen.broadcasts.map(({ broadcast_id }) => broadcast_id));
    const gone_before = this.gone.get(channel.connection_id);
    const gone = new Map<string, Gone>();
    const { gone_ms = GONE.ms } = this.deps;
    for (const broadcast_id of (turns ? known.online : known.found).filter((id) => !on_air.has(id))) {
      const over = seen.over.find((one) => one.broadcast_id === broadcast_id);
      const { since, looks } = gone_before?.get(broadcast_id) ?? { since: now, looks: 0 };
      if (over === undefined && (looks + 1 < GONE.looks || now - since < gone_ms)) {
        gone.set(broadcast_id, { since, looks: looks + 1 });
        continue;
      }
      const ended_at = over?.ended_at ?? new Date(since).toISOString();
      const raw = { id: broadcast_id, channel_id: channel.platform_channel_id, is_live: false, ended_at };
      // The platform's own statement counts as its report.
      const source = over === undefined ? { seen_at: looked_at } : { reported_at: looked_at };
      drafts.push({ ...turn('stream_offline', broadcast_id, ended_at, raw), ...source });
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

/** Milliseconds that the platform requires before the next call. */
const retryAfterOf = (error: unknown): number => (error instanceof HttpFailed ? (error.retry_after_ms ?? 0) : 0);

/** True for temporary failures: an unavailable vendor, token or database. */
const isPassing = (error: unknown): boolean =>
  [HttpFailed, NotSent, OutcomeUnknown, ReconnectRequired, TokenUnavailable].some((kind) => error instanceof kind) ||
  failureKind(error) !== 'bug';

/**
 * Divides the channels into batches of at most `most` channels of one app, because a token is valid for its own app
 * alone.
 */
function batches(channels: readonly WatchedChannel[], most: number): WatchedChannel[][] {
  const by_app = new Map<string, WatchedChannel[]>();
  for (const channel of channels) by_app.set(channel.client_id, [...(by_app.get(channel.client_id) ?? []), channel]);
  return [...by_app.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / most) }, (_, index) => all.slice(index * most, (index + 1) * most)),
  );
}
