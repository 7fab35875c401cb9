import { z } from 'zod';
import { TOPICS } from '../../domain/common/records';
import { pause } from '../../lib/async/signal';
import type { Json } from '../../lib/json/json';
import type { Queryable } from '../../engines/postgres/port';
import { HttpFailed } from '../../vendors/http/port';
import { withToken } from '../../services/connections/with-token';
import type { PlayerState, SpotifyPlayer } from '../../vendors/spotify/port';
import type {
  Adapter,
  AdapterSession,
  Link,
  LinkStatus,
  LinkedConnection,
  Received,
} from '../runtime/connection/adapter';
import { endSession } from '../runtime/connection/ending';
import { readJson, storableJson } from '../runtime/parse/text';
import * as webhook from '../runtime/webhook/webhook';
import type { Outcome } from '../runtime/webhook/webhook';
import { AppPauses } from './app-pauses';
import { type Change, changesOf, isNews, type Seen, stateOf } from './changes';

export interface SpotifyAdapterDeps {
  player: SpotifyPlayer;
  /** Publishes the current track to listeners; it is not stored. */
  nowPlaying(account_id: string, state: PlayerState): Promise<void>;
  /** Whether an account's player is to be read: while one of its channels is live. Default: always. */
  isOnAir?(account_id: string): Promise<boolean>;
  /** Database in which processes share the pauses of apps. Default: each process has its own. */
  db?: Queryable;
  timings?: Partial<SpotifyTimings>;
}

export interface SpotifyTimings {
  playing_ms: number;
  paused_ms: number;
  /** Pause after the answer that the app, or the account, may not call. */
  refused_ms: number;
}

/** Source: spec extra-facts §13. */
const TIMINGS: SpotifyTimings = { playing_ms: 3_000, paused_ms: 15_000, refused_ms: 300_000 };
/** Pause after a 429 without `Retry-After`. */
const BUSY_MS = 30_000;

/** State for a successor. `count` numbers the changes, so that a change that is found twice has one id. */
interface Kept {
  count: number;
  seen: Seen;
  /** Published state, for new listeners; absent in states of earlier releases. */
  shown?: PlayerState;
}

/**
 * Spotify's player, which Spotify does not push: while a channel of the account is live the player is polled every 3
 * seconds while it plays and every 15 otherwise, and differences from the previous poll become events. The last poll is
 * kept, so that changes without a polling process are reported by the next one; of several only the last can be known.
 */
export function createSpotifyAdapter(deps: SpotifyAdapterDeps): Adapter<SpotifySession> {
  const timings = { ...TIMINGS, ...deps.timings };
  const pauses = new AppPauses(deps.db ?? null);
  const open = async (link: Link, kept: Kept | null): Promise<SpotifySession> => {
    const session = new SpotifySession(link, deps, pauses, timings, kept);
    await session.begin();
    return session;
  };
  return {
    vendor: 'spotify',
    connect: (link) => open(link, null),
    resume: (link, state) => open(link, readKept(state)),
    normalise: normaliseSpotify,
    stop: endSession,
  };
}

/** Null for the state of another release. */
function readKept(state: Json): Kept | null {
  const at = (...path: string[]) => webhook.member(state, ...path);
  const whole = Number.isSafeInteger(at('count')) && typeof at('seen', 'at') === 'number';
  return whole ? (state as unknown as Kept) : null;
}

/** Polls one account's player. */
export class SpotifySession implements AdapterSession {
  ended: Promise<void> = Promise.resolve();
  private readonly over = new AbortController();
  private shown = '';
  /** No channel is live: the next poll starts over, because hours may lie between. */
  private resting = false;

  constructor(
    private readonly link: Link,
    private readonly deps: SpotifyAdapterDeps,
    private readonly pauses: AppPauses,
    private readonly timings: SpotifyTimings,
    private kept: Kept | null,
  ) {}

  /** @throws the error of the first poll */
  async begin(): Promise<void> {
    const first_pause_ms = await this.look();
    this.ended = this.watch(first_pause_ms);
    this.ended.catch(() => undefined);
  }

  end(): void {
    this.over.abort();
  }

  private async watch(first_pause_ms: number): Promise<void> {
    const { signal } = this.over;
    await pause(first_pause_ms, signal);
    while (!signal.aborted) await pause(await this.look(), signal);
  }

  /** Polls once; returns the pause before the next poll. */
  private async look(): Promise<number> {
    const { link, deps, timings, pauses } = this;
    const { account_id, client_id } = link.connection;
    if (account_id !== null && (await deps.isOnAir?.(account_id)) === false) {
      this.resting = true;
      this.show('connected');
      return timings.paused_ms;
    }
    const left_ms = await pauses.left(client_id);
    if (left_ms > 0) return this.wait(left_ms);
    let player: PlayerState | null;
    try {
      player = await withToken(
        (refused) => link.token(refused),
        (token) => deps.player.state(token),
      );
    } catch (error) {
      if (!(error instanceof HttpFailed)) throw error;
      if (error.status === 429) {
        const asked_ms = Math.max(error.retry_after_ms ?? BUSY_MS, timings.playing_ms);
        await pauses.begin(client_id, asked_ms);
        return this.wait(asked_ms);
      }
      if (error.status !== 403) throw error;
      this.show('degraded', 'Spotify does not let this account’s player be read: Premium or a scope is missing.');
      return timings.refused_ms;
    }
    if (this.over.signal.aborted) return 0;
    const at = Date.now();
    link.heard(at);
    this.show('connected');
    await this.compare({ at, player, item: player?.item ?? this.kept?.seen.item ?? null });
    return player?.is_playing ? timings.playing_ms : timings.paused_ms;
  }

  /** Adds a random part, so that not all players of an app are polled together when its pause ends. */
  private wait(ms: number): number {
    this.show('degraded', 'Spotify lets the app ask no more for a while.');
    return ms * (1 + Math.random() / 4);
  }

  private async compare(now: Seen): Promise<void> {
    const { link, deps, kept } = this;
    const { account_id } = link.connection;
    const first = kept === null || this.resting;
    this.resting = false;
    // The first poll is compared with itself: no change is known.
    const before = first ? now : kept.seen;
    const changes = changesOf(before, now);
    let count = kept?.count ?? now.at;
    const deliveries = changes.map((change) => link.deliver(received(change, ++count, now.at)));
    this.kept = { count, seen: now, shown: stateOf(now) };
    await Promise.all(deliveries);
    // Only the position moved with the clock: there is nothing to keep or to publish.
    if (!first && !isNews(before, now)) return;
    // Kept after the delivery: after a crash in between, the same changes are found again, under the same numbers.
    link.keep(this.kept as unknown as Json);
    if (account_id !== null) await deps.nowPlaying(account_id, this.kept.shown!);
  }

  private show(status: LinkStatus, detail?: string): void {
    const said = detail ?? status;
    if (said === this.shown) return;
    this.shown = said;
    this.link.status(status, detail);
  }
}

const received = ({ action, to, raw }: Change, count: number, received_at: number): Received => ({
  text: JSON.stringify({ action, to, count, raw }),
  received_at,
});

/** A change as {@link received} encodes it. */
const PlayerChange = z.object({
  action: z.enum(['track', 'play', 'pause', 'skip', 'volume', 'device']),
  to: z.string(),
  count: z.int(),
  raw: z.record(z.string(), z.unknown()),
});

/** Converts a change to a record. Its only person is the account's owner. */
export function normaliseSpotify(
  { text, received_at }: Received,
  { account_id, connection_id }: LinkedConnection,
): Outcome {
  if (account_id === null) return webhook.skip('no_account');
  const reading = readJson(storableJson(text));
  if (!reading.ok) return webhook.park(reading.reason, reading.detail);
  const read = PlayerChange.safeParse(reading.value);
  if (!read.success) return webhook.park('bad_payload', read.error.issues[0]!.message);
  const { action, to, count, raw } = read.data;
  return webhook.ok({
    owner: { kind: 'account', account_id },
    topic: TOPICS.platform_events,
    type: `spotify:${action}`,
    platform: 'spotify',
    external_id: webhook.externalId('spotify', connection_id, String(count), action, to),
    occurred_at: new Date(received_at).toISOString(),
    subject: null,
    raw: JSON.stringify(raw),
  });
}
