import { randomUUID } from 'node:crypto';
import type { RawData, WebSocket } from 'ws';
import { objectsAt } from '../../lib/json/digits';
import type { Json } from '../../lib/json/json';
import { withTimeout } from '../../lib/async/signal';
import { HttpFailed } from '../../vendors/http/port';
import { withToken } from '../../services/connections/with-token';
import type { TrovoOpenApi } from '../../vendors/trovo/port';
import { type Adapter, type AdapterSession, type Link, LinkLost, type Received } from '../runtime/connection/adapter';
import { readJson } from '../runtime/parse/text';
import { readTime } from '../../lib/time/vendor-times';
import { idText, member } from '../runtime/webhook/webhook';
import { normaliseTrovoChat } from './chat';

export interface TrovoAdapterDeps {
  api: Pick<TrovoOpenApi, 'ownChatToken' | 'channelChatToken' | 'chat'>;
  timings?: Partial<TrovoTimings>;
}

export interface TrovoTimings {
  /** Longest time for a token, the socket and the answer to AUTH. */
  open_ms: number;
  /** Time between two PINGs until the vendor requires another. */
  gap_ms: number;
  /** Bounds of the time that the vendor may require. */
  least_gap_ms: number;
  longest_gap_ms: number;
}

const TIMINGS: TrovoTimings = { open_ms: 15_000, gap_ms: 30_000, least_gap_ms: 1_000, longest_gap_ms: 120_000 };
/** Tolerated clock difference in deciding whether an item of the first frame is new. */
const SKEW_MS = 5_000;
/** Items dated further ahead have no valid time: later items would count as old. */
const AHEAD_MS = 300_000;

/**
 * Trovo's chat: a token that lives seconds, AUTH, PING at the vendor's interval. The first frame of every connection
 * replays the newest items, of which those after the last stored one count.
 */
export function createTrovoAdapter({ api, timings }: TrovoAdapterDeps): Adapter<TrovoSession> {
  const effective = { ...TIMINGS, ...timings };

  async function open(link: Link, since: number, resuming: boolean): Promise<TrovoSession> {
    const late = () => new LinkLost('Trovo’s chat did not open in time.');
    const token = await withTimeout(chatToken(link), effective.open_ms, late);
    const session = new TrovoSession(link, api.chat(), { since, resuming }, effective);
    try {
      await withTimeout(session.authorised(token), effective.open_ms, late);
    } catch (error) {
      session.end();
      throw error;
    }
    return session;
  }

  async function chatToken(link: Link): Promise<string> {
    const { connection } = link;
    const client_id = connection.client_id ?? '';
    try {
      return await withToken(
        (refused) => link.token(refused),
        (own) => api.ownChatToken(client_id, own),
      );
    } catch (error) {
      // Without the scope for its own chat, the channel's public chat is read.
      if (!(error instanceof HttpFailed) || ![400, 403, 404].includes(error.status)) throw error;
      return api.channelChatToken(client_id, connection.channel_id);
    }
  }

  return {
    vendor: 'trovo',
    connect: (link) => open(link, Date.now() - SKEW_MS, false),
    resume(link, state) {
      const last = member(state, 'last');
      const known = typeof last === 'number' && last <= Date.now() + AHEAD_MS;
      return open(link, known ? last : Date.now() - SKEW_MS, known);
    },
    normalise: normaliseTrovoChat,
    ownerOf: (received, state) => (isBeforeSuccessor(received, state) ? 'former' : 'successor'),
    async stop(session) {
      session.end();
      await session.ended.catch(() => undefined);
    },
  };
}

/**
 * Whether an item was sent before the successor connected, which received only the newest of such items. An item that
 * both store has one id, so that differing clocks do no harm.
 */
function isBeforeSuccessor({ text }: Received, state: Json): boolean {
  const [opened, at] = [member(state, 'opened'), sentAt(text)];
  return at !== null && typeof opened === 'number' && at <= opened + SKEW_MS;
}

/** A socket of the chat. */
export class TrovoSession implements AdapterSession {
  readonly ended: Promise<void>;
  private readonly authorising = randomUUID();
  private granted!: () => void;
  private refused!: (error: Error) => void;
  private readonly grant = new Promise<void>((granted, refused) => {
    this.granted = granted;
    this.refused = refused;
  });
  private first_frame = true;
  /** Time at which the chat was opened; Unix milliseconds. */
  private opened = 0;
  /** Time of the newest stored item; Unix milliseconds. */
  private last: number;
  private gap_ms: number;
  private answered = true;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly link: Link,
    private readonly socket: WebSocket,
    private readonly from: { since: number; resuming: boolean },
    private readonly timings: TrovoTimings,
  ) {
    this.last = from.since;
    this.gap_ms = timings.gap_ms;
    this.grant.catch(() => undefined);
    socket.on('message', (data: RawData, is_binary: boolean) => is_binary || this.take((data as Buffer).toString()));
    let cause: Error | undefined;
    socket.on('error', (error: Error) => (cause = error));
    this.ended = new Promise((_resolve, reject) =>
      socket.on('close', (code: number) => {
        clearTimeout(this.timer);
        const lost = new LinkLost(`Trovo’s chat has closed the connection (${code}).`, { cause });
        this.refused(lost);
        reject(lost);
      }),
    );
    this.ended.catch(() => undefined);
  }

  /** Sends AUTH as soon as the socket is open. @throws LinkLost */
  authorised(token: string): Promise<void> {
    this.socket.on('open', () => this.send({ type: 'AUTH', nonce: this.authorising, data: { token } }));
    return this.grant;
  }

  end(): void {
    this.socket.terminate();
  }

  private take(text: string): void {
    const received_at = Date.now();
    this.answered = true;
    this.link.heard(received_at);
    const json = readJson(text);
    if (!json.ok) return;
    const frame = json.value;
    const type = member(frame, 'type');
    this.askedGap(member(frame, 'data', 'gap'));
    if (type === 'CHAT') return this.chats(frame, text, received_at);
    if (type !== 'RESPONSE' || member(frame, 'nonce') !== this.authorising) return;
    const error = member(frame, 'error') ?? member(frame, 'data', 'error');
    if (typeof error === 'string' && error !== '')
      return this.refused(new LinkLost(`Trovo refuses the chat: ${error.slice(0, 200)}`));
    this.opened = received_at;
    // From here on a successor continues from the items stored by this session.
    this.keep();
    this.granted();
    this.pingLater();
  }

  private chats(frame: unknown, text: string, received_at: number): void {
    const channel_id = idText(member(frame, 'channel_info', 'channel_id'));
    if (channel_id !== null && channel_id !== this.link.connection.channel_id) return;
    const items = objectsAt(text, ['data', 'chats']).map((item) => ({
      item,
      at: believable(sentAt(item), received_at),
    }));
    const counting = this.first_frame ? this.newOnes(items) : items;
    this.first_frame = false;
    const newest = Math.max(this.last, ...counting.map(({ at }) => at ?? 0));
    const stored = counting.map(({ item }) => this.link.deliver({ text: item, received_at }));
    if (this.link.full) {
      this.socket.pause();
      void this.link.drained().then(() => this.socket.resume());
    }
    if (newest === this.last) return;
    void Promise.all(stored).then(() => {
      if (newest <= this.last) return;
      this.last = newest;
      this.keep();
    });
  }

  /** Returns the messages of the history since the last stored one. */
  private newOnes(items: readonly { item: string; at: number | null }[]) {
    const { since, resuming } = this.from;
    const oldest = Math.min(...items.map(({ at }) => at ?? Infinity));
    // A history that does not reach back to what is stored has a gap before it.
    if (resuming && items.length > 0 && Number.isFinite(oldest) && oldest > since) {
      this.link.missed({ from: since, to: oldest, detail: 'Trovo repeats its newest messages alone.' });
    }
    return items.filter(({ at }) => at === null || at >= since);
  }

  private askedGap(gap: unknown): void {
    if (typeof gap !== 'number' || !(gap > 0)) return;
    this.gap_ms = Math.min(Math.max(gap * 1000, this.timings.least_gap_ms), this.timings.longest_gap_ms);
  }

  private pingLater(): void {
    // A resumed process finds its timers due before it has read the frames that arrived meanwhile: those are read
    // first.
    this.timer = setTimeout(() => setImmediate(() => this.ping()), this.gap_ms);
  }

  private ping(): void {
    // Nothing arrived since the last PING, not even its PONG: the connection is dead, whatever the socket's state is.
    if (!this.answered) return this.end();
    if (this.socket.readyState !== this.socket.OPEN) return;
    this.answered = false;
    this.send({ type: 'PING', nonce: randomUUID() });
    this.pingLater();
  }

  private keep(): void {
    this.link.keep({ last: this.last, opened: this.opened });
  }

  private send(message: object): void {
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(JSON.stringify(message));
  }
}

const believable = (at: number | null, now: number): number | null => (at !== null && at <= now + AHEAD_MS ? at : null);

function sentAt(item: string): number | null {
  const json = readJson(item);
  return json.ok ? readTime(member(json.value, 'send_time')) : null;
}
