import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { RawData, WebSocket } from 'ws';
import { within } from '../../kernel/signal';
import { farewell } from '../../kernel/farewell';
import { kindOf } from '../../vendors/streamelements/port';
import { LinkLost, PauseAsked } from '../runtime/adapter';
import { readJson } from '../runtime/text';
import { idText, member } from '../runtime/webhook';

export interface StreamElementsTimings {
  /** Longest time for the socket, its welcome and the answers to what is subscribed to. */
  open_ms: number;
  /** The server pings every 30 s; after so long without any word the line is dead. */
  silence_ms: number;
}

/** Longest token that a socket is moved with, in characters. */
const MOST_TOKEN = 4_000;
/** Longest pause that Astro may ask for. */
const MOST_PAUSE_MS = 3_600_000;
/** How long the server may take to answer the goodbye of a socket that it has moved. */
const LEAVE_MS = 3_000;

interface Listener {
  onMessage(text: string): void;
  onAlive(): void;
  /** Asked of a socket that is left: nobody else lets it wait. */
  full(): boolean;
  onMove(reconnect_token: string): void;
  onEnd(error: Error): void;
}

/** One socket of Astro. */
export class Socket {
  /** Rejects when there is none in time. */
  readonly welcome: Promise<void>;
  private readonly answers = new Map<string, (error: string | null) => void>();
  private silence: NodeJS.Timeout | undefined;
  private failed!: (error: Error) => void;

  constructor(
    private readonly socket: WebSocket,
    private readonly timings: StreamElementsTimings,
    private readonly listener: Listener,
  ) {
    let welcomed!: () => void;
    const welcome = new Promise<void>((resolve, reject) => {
      welcomed = resolve;
      this.failed = reject;
    });
    welcome.catch(() => undefined);
    this.welcome = within(welcome, timings.open_ms, () => new LinkLost('StreamElements did not answer in time.')).catch(
      (error: unknown) => {
        this.close();
        throw error;
      },
    );
    let cause: Error | undefined;
    socket.on('error', (error: Error) => (cause ??= error));
    socket.on('unexpected-response', (_request, response: IncomingMessage) => {
      const pause_ms = Number(response.headers['retry-after'] ?? NaN) * 1000;
      cause = !(pause_ms >= 0 && pause_ms <= MOST_PAUSE_MS)
        ? new LinkLost(`StreamElements answered ${response.statusCode}.`)
        : new PauseAsked(`StreamElements answered ${response.statusCode}.`, pause_ms);
      socket.terminate();
    });
    socket.on('close', (code: number) => {
      clearTimeout(this.silence);
      const error =
        cause instanceof PauseAsked || cause instanceof LinkLost
          ? cause
          : new LinkLost(`StreamElements has closed the connection (${code}).`, { cause });
      this.failed(error);
      for (const answer of this.answers.values()) answer('the connection was closed');
      listener.onEnd(error);
    });
    socket.on('ping', () => this.alive());
    socket.on('message', (data: RawData, is_binary: boolean) => {
      this.alive();
      if (!is_binary) this.take((data as Buffer).toString(), welcomed);
    });
    this.alive();
  }

  /** Null, or why it is refused. */
  async subscribe(topic: string, room: string, token: string): Promise<string | null> {
    const nonce = randomUUID();
    const answer = new Promise<string | null>((resolve) => this.answers.set(nonce, resolve));
    const data = { topic, room, token, token_type: kindOf(token) };
    this.socket.send(JSON.stringify({ type: 'subscribe', nonce, data }));
    const late = () => new LinkLost('StreamElements did not answer in time.');
    return within(answer, this.timings.open_ms, late).finally(() => this.answers.delete(nonce));
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  close(): void {
    this.socket.terminate();
  }

  /** Another socket is there in its place: what was sent over this one before is read still. */
  leave(): void {
    void farewell(this.socket, LEAVE_MS, () => this.listener.full());
  }

  private take(text: string, welcomed: () => void): void {
    const frame = readJson(text);
    if (!frame.ok) return;
    const at = (...path: string[]) => member(frame.value, ...path);
    switch (at('type')) {
      case 'welcome':
        return welcomed();
      case 'response': {
        const error = idText(at('error'));
        return this.answers.get(idText(at('nonce')) ?? '')?.(error);
      }
      case 'reconnect': {
        const token = idText(at('data', 'reconnect_token'));
        // It goes into an address.
        return token === null || token.length > MOST_TOKEN ? this.close() : this.listener.onMove(token);
      }
      case 'message':
        return this.listener.onMessage(text);
    }
  }

  private alive(): void {
    this.listener.onAlive();
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.close(), this.timings.silence_ms);
  }
}
