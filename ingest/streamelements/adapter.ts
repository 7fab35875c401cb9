import type { Json } from '../../kernel/json';
import { HttpFailed } from '../../vendors/http/port';
import { withToken } from '../../access/with-token';
import type { StreamElementsApi } from '../../vendors/streamelements/port';
import { type Adapter, type AdapterSession, type Link, LinkLost } from '../runtime/adapter';
import { endSession } from '../runtime/ending';
import { member } from '../runtime/webhook';
import { Socket, type StreamElementsTimings } from './socket';
import { MODERATED_TIPS, normaliseTips, TIPS } from './tips';

const TIMINGS: StreamElementsTimings = { open_ms: 15_000, silence_ms: 75_000 };
/** Tips that are asked for at once after a gap, and how often; more than these were missed. */
const PAGE = 100;
const MOST_PAGES = 20;
/** A tip is dated when it is made, and may be allowed hours later: catching up reaches this far before the gap. */
const ALLOWED_WITHIN_MS = 24 * 3_600_000;
/** The same after a state of an earlier release, which does not name the channel's first session. */
const ALLOWED_WITHIN_BEFORE_MS = 600_000;
/** Errors of Astro after which no other try with the same token helps. */
const TOKEN_REFUSED = /^err_(?:unauthori[sz]ed|forbidden|(?:invalid|expired|bad)_token|token_(?:invalid|expired))$/;

/** State kept for a successor. Times are Unix milliseconds. */
interface Kept {
  /** Channel at StreamElements. */
  room: string;
  /** Until when tips were received. */
  last: number;
  /** First session with this channel: tips from before it are not ours to announce. */
  begun: number;
}

/**
 * StreamElements' tips over its gateway Astro. After a gap the tips since then are fetched, since a socket replays
 * nothing; what comes again is known by its id. When the server asks for it, another socket is opened beside the old
 * one, which is read until the new one is welcome.
 */
export function createStreamElementsAdapter(
  api: StreamElementsApi,
  timings: Partial<StreamElementsTimings> = {},
): Adapter<TipsSession> {
  const given = { ...TIMINGS, ...timings };

  async function open(link: Link, kept: Kept | null): Promise<TipsSession> {
    const room = await withToken(
      (refused) => link.token(refused),
      (token) => api.channel(token),
    );
    const session = new TipsSession(api, link, room, given);
    try {
      await session.begin();
      // A new token may be of another channel, whose tips are not the ones that were missed.
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

/** One subscription, over all the sockets that the server moves it to. */
export class TipsSession implements AdapterSession {
  readonly ended: Promise<void>;
  private endWith!: (error: Error) => void;
  private current: Socket | undefined;
  private over = false;
  private last = 0;
  private begun = 0;
  private moving = false;
  /** What came before this session is stored, or told to be missed. */
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

  /** Opens the first socket and subscribes. @throws LinkLost, PauseAsked; ConnectionRefused for a token that is none */
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

  /** Delivers what was paid or allowed between two sessions. */
  async catchUp({ last, begun }: Kept): Promise<void> {
    this.last = last;
    this.begun = begun;
    const since = Math.max(last - ALLOWED_WITHIN_MS, begun);
    const now = Date.now();
    try {
      for (let pages = 0; pages < MOST_PAGES; pages += 1) {
        const page = { since, offset: pages * PAGE, limit: PAGE };
        const tips = await withToken(
          (refused) => this.link.token(refused),
          (token) => this.api.tips(this.room, token, page),
        );
        const texts = tips.map((tip) => JSON.stringify({ type: 'message', topic: TIPS, data: tip }));
        await Promise.all(texts.reverse().map((text) => this.deliver(text)));
        if (tips.length < PAGE) return this.keep(now);
      }
      const detail = `StreamElements was asked for the newest ${MOST_PAGES * PAGE} tips alone.`;
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

  /** Until when nothing is missing. */
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
    // One move at a time, and none before there is something to move: a socket beside them would be closed by nobody.
    if (before === undefined || this.moving) return;
    this.moving = true;
    try {
      const socket = await this.open(reconnect_token);
      this.current = socket;
      before.leave();
    } catch (error) {
      // The old one ends soon: everything is opened anew, and what falls between is fetched.
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
