import type { Json } from '../../lib/json/json';
import { HttpFailed } from '../../vendors/http/port';
import { withToken } from '../../services/connections/with-token';
import type { StreamElementsApi } from '../../vendors/streamelements/port';
import { type Adapter, type AdapterSession, type Link, LinkLost } from '../runtime/connection/adapter';
import { endSession } from '../runtime/connection/ending';
import { member } from '../runtime/webhook/webhook';
import { Socket, type StreamElementsTimings } from './socket';
import { MODERATED_TIPS, normaliseTips, TIPS } from './tips';

const TIMINGS: StreamElementsTimings = { open_ms: 15_000, silence_ms: 75_000 };
/** Tips per request after a gap, and maximum requests; further tips are reported as missed. */
const PAGE = 100;
const MAX_PAGES = 20;
/** A tip has the time of its making, and may be allowed hours later: catching up starts this long before the gap. */
const ALLOWED_WITHIN_MS = 24 * 3_600_000;
/** Shorter time for a state of an earlier release, which does not name the channel's first session. */
const ALLOWED_WITHIN_BEFORE_MS = 600_000;
/** Errors of Astro after which no other try with the same token helps. */
const TOKEN_REFUSED = /^err_(?:unauthori[sz]ed|forbidden|(?:invalid|expired|bad)_token|token_(?:invalid|expired))$/;

/** State kept for a successor. Times are Unix milliseconds. */
interface Kept {
  /** Channel at StreamElements. */
  room: string;
  /** Time up to which tips were received. */
  last: number;
  /** Begin of the first session with this channel: earlier tips are not ours to announce. */
  begun: number;
}

/**
 * StreamElements' tips over its gateway Astro. After a gap the tips since then are fetched, because a socket replays
 * nothing; repeated tips have the same id. On the server's request another socket is opened next to the old one, which
 * is read until the new one is welcome.
 */
export function createStreamElementsAdapter(
  api: StreamElementsApi,
  timings: Partial<StreamElementsTimings> = {},
): Adapter<TipsSession> {
  const effective = { ...TIMINGS, ...timings };

  async function open(link: Link, kept: Kept | null): Promise<TipsSession> {
    const room = await withToken(
      (refused) => link.token(refused),
      (token) => api.channel(token),
    );
    const session = new TipsSession(api, link, room, effective);
    try {
      await session.begin();
      // A new token may belong to another channel, whose tips are not the missed ones.
      if (kept?.room !== room) session.keepFrom(Date.now());
      else await session.catchUp(kept);
      return session;
    } catch (error) {
      session.end();
      throw error;
    }
  }

  return {
    vendor: 'streamelements',
    connect: (link) => open(link, null),
    resume: (link, state) => open(link, readKept(state)),
    normalise: normaliseTips,
    stop: endSession,
  };
}

function readKept(state: Json): Kept | null {
  const room = member(state, 'room');
  const last = member(state, 'last');
  if (typeof room !== 'string' || typeof last !== 'number') return null;
  const begun = member(state, 'begun');
  return { room, last, begun: typeof begun === 'number' ? begun : last - ALLOWED_WITHIN_BEFORE_MS };
}

/** A subscription, over all the sockets that the server moves it to. */
export class TipsSession implements AdapterSession {
  readonly ended: Promise<void>;
  private endWith!: (error: Error) => void;
  private current: Socket | undefined;
  private over = false;
  private last = 0;
  private begun = 0;
  private moving = false;
  /** True once the events from before this session are stored, or reported as missed. */
  private caught_up = false;

  constructor(
    private readonly api: StreamElementsApi,
    private readonly link: Link,
    private readonly room: string,
    private readonly timings: StreamElementsTimings,
  ) {
    this.ended = new Promise((_resolve, reject) => (this.endWith = reject));
    this.ended.catch(() => undefined);
  }

  /**
   * Opens the first socket and subscribes.
   * @throws LinkLost, PauseAsked; ConnectionRefused for an invalid token
   */
  async begin(): Promise<void> {
    const token = await this.link.token();
    const socket = await this.open();
    const refused = await socket.subscribe(TIPS, this.room, token);
    if (refused !== null && TOKEN_REFUSED.test(refused)) await this.link.token(token);
    if (refused !== null) throw new LinkLost(`StreamElements refuses its tips: ${refused.slice(0, 200)}.`);
    const unmoderated = await socket.subscribe(MODERATED_TIPS, this.room, token);
    if (unmoderated !== null) {
      this.link.status('degraded', 'Tips that wait for a moderator are not told when they are allowed.');
    }
    this.current = socket;
  }

  /** Delivers the tips that were paid or allowed between two sessions. */
  async catchUp({ last, begun }: Kept): Promise<void> {
    this.last = last;
    this.begun = begun;
    const since = Math.max(last - ALLOWED_WITHIN_MS, begun);
    const now = Date.now();
    try {
      for (let pages = 0; pages < MAX_PAGES; pages += 1) {
        const page = { since, offset: pages * PAGE, limit: PAGE };
        const tips = await withToken(
          (refused) => this.link.token(refused),
          (token) => this.api.tips(this.room, token, page),
        );
        const texts = tips.map((tip) => JSON.stringify({ type: 'message', topic: TIPS, data: tip }));
        await Promise.all(texts.reverse().map((text) => this.deliver(text)));
        if (tips.length < PAGE) return this.keep(now);
      }
      const detail = `StreamElements was asked for the newest ${MAX_PAGES * PAGE} tips alone.`;
      this.link.missed({ from: last, to: now, detail });
    } catch (error) {
      if (!(error instanceof HttpFailed) || error.status === 429 || error.status >= 500) throw error;
      this.link.missed({ from: last, to: now, detail: `The tips since then could not be fetched (${error.status}).` });
    }
    this.keep(now);
  }

  /** Begins with a channel: nothing before `now` is fetched later. */
  keepFrom(now: number): void {
    this.begun = now;
    this.keep(now);
  }

  /** Stores the time up to which nothing is missing. */
  keep(last: number): void {
    this.caught_up = true;
    this.last = Math.max(this.last, last);
    this.link.keep({ room: this.room, last: this.last, begun: this.begun });
  }

  end(): void {
    this.over = true;
    this.current?.close();
    this.endWith(new LinkLost('The connection was given up.'));
  }

  private async open(reconnect_token?: string): Promise<Socket> {
    const socket: Socket = new Socket(this.api.socket(reconnect_token), this.timings, {
      onMessage: (text) => this.onMessage(text),
      onAlive: () => this.link.heard(Date.now()),
      full: () => this.link.full,
      onMove: (token) => void this.move(token),
      onEnd: (error) => this.onEnd(socket, error),
    });
    await socket.welcome;
    // Given up while it was opened.
    if (this.over) socket.close();
    return socket;
  }

  /** The old socket is read until the new one is welcome. */
  private async move(reconnect_token: string): Promise<void> {
    const before = this.current;
    // One move at a time, and only with a current socket: another one would never be closed.
    if (before === undefined || this.moving) return;
    this.moving = true;
    try {
      const socket = await this.open(reconnect_token);
      this.current = socket;
      before.leave();
    } catch (error) {
      // The old socket ends soon: everything is opened again, and the gap is fetched.
      if (!this.over) this.endWith(error as Error);
    } finally {
      this.moving = false;
    }
  }

  private onEnd(socket: Socket, error: Error): void {
    if (socket === this.current) this.endWith(error);
  }

  private onMessage(text: string): void {
    const received_at = Date.now();
    void this.deliver(text).then(() => {
      if (this.caught_up) this.keep(received_at);
    });
    if (!this.link.full) return;
    this.current?.pause();
    void this.link.drained().then(() => this.current?.resume());
  }

  private deliver(text: string): Promise<void> {
    return this.link.deliver({ text, received_at: Date.now() });
  }
}
