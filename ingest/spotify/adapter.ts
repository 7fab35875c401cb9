import { z } from 'zod';
import { TOPICS } from '../../domain/records';
import { pause } from '../../kernel/signal';
import type { Json } from '../../kernel/json';
import { HttpFailed } from '../../vendors/http/port';
import { withToken } from '../../access/with-token';
import type { PlayerState, SpotifyPlayer } from '../../vendors/spotify/port';
import type { Adapter, AdapterSession, Link, LinkStatus, LinkedConnection, Received } from '../runtime/adapter';
import { endSession } from '../runtime/ending';
import { readJson, storableJson } from '../runtime/text';
import * as webhook from '../runtime/webhook';
import type { Outcome } from '../runtime/webhook';
import { AppPauses } from './app-pauses';
import { type Change, changesOf, isNews, type Seen, stateOf } from './changes';

export interface SpotifyAdapterDeps {
  player: SpotifyPlayer;
  /** Tells who listens along what is played now; kept nowhere. */
  nowPlaying(account_id: string, state: PlayerState): Promise<void>;
  timings?: Partial<SpotifyTimings>;
}

export interface SpotifyTimings {
  playing_ms: number;
  paused_ms: number;
  /** After an answer that says that the app, or the account, may not ask. */
  refused_ms: number;
}

/** Source: spec extra-facts §13. */
const TIMINGS: SpotifyTimings = { playing_ms: 3_000, paused_ms: 15_000, refused_ms: 300_000 };
/** Where Spotify says too many requests and not for how long. */
const BUSY_MS = 30_000;

/** What a successor needs. `count` numbers the changes, so that one that is found twice is known. */
interface Kept {
  count: number;
  seen: Seen;
}

/**
 * Spotify's player, which nobody is pushed: it is looked at every 3 seconds while it plays and every 15 else, and what
 * differs from the look before is told as events. The last look is kept, so that what was done while no process looked
 * is told by the next; in between only the last of it can be known.
 */
export function createSpotifyAdapter(deps: SpotifyAdapterDeps): Adapter<SpotifySession> {
  const timings = { ...TIMINGS, ...deps.timings };
  const pauses = new AppPauses();
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

/** Null for what another build kept. */
function readKept(state: Json): Kept | null {
  const at = (...path: string[]) => webhook.member(state, ...path);
  const whole = Number.isSafeInteger(at('count')) && typeof at('seen', 'at') === 'number';
  return whole ? (state as unknown as Kept) : null;
}

/** Looks at one account's player. */
export class SpotifySession implements AdapterSession {
  ended: Promise<void> = Promise.resolve();
  private readonly over = new AbortController();
  private shown = '';

  constructor(
    private readonly link: Link,
    private readonly deps: SpotifyAdapterDeps,
    private readonly pauses: AppPauses,
    private readonly timings: SpotifyTimings,
    private kept: Kept | null,
  ) {}

  /** @throws what the first look throws */
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

  /** Answers how long to wait before the next. */
  private async look(): Promise<number> {
    const { link, deps, timings, pauses } = this;
    const { client_id } = link.connection;
    const left_ms = pauses.left(client_id);
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
        pauses.begin(client_id, asked_ms);
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

  /** At random a little longer, lest all players of an app are looked at together when its pause is over. */
  private wait(ms: number): number {
    this.show('degraded', 'Spotify lets the app ask no more for a while.');
    return ms * (1 + Math.random() / 4);
  }

  private async compare(now: Seen): Promise<void> {
    const { link, deps, kept } = this;
    const { account_id } = link.connection;
    // The first look is compared with itself: nothing is known to have changed.
    const before = kept?.seen ?? now;
    const changes = changesOf(before, now);
    let count = kept?.count ?? now.at;
    const deliveries = changes.map((change) => link.deliver(received(change, ++count, now.at)));
    this.kept = { count, seen: now };
    await Promise.all(deliveries);
    // Only the position moved, as the clock says: there is nothing to keep or to show.
    if (kept !== null && !isNews(before, now)) return;
    // Kept behind what it says: a crash in between finds the same changes again, under the same numbers.
    link.keep(this.kept as unknown as Json);
    if (account_id !== null) await deps.nowPlaying(account_id, stateOf(now));
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

/** A change as {@link received} hands it on. */
const PlayerChange = z.object({
  action: z.enum(['track', 'play', 'pause', 'skip', 'volume', 'device']),
  to: z.string(),
  count: z.int(),
  raw: z.record(z.string(), z.unknown()),
});

/** A change that was found, to a record. Nobody but the account's owner is in it. */
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
