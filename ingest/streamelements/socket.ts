import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { RawData, WebSocket } from 'ws';
import { withTimeout } from '../../lib/async/signal';
import { closeGracefully } from '../../lib/async/close-gracefully';
import { kindOf } from '../../vendors/streamelements/port';
import { LinkLost, PauseAsked } from '../runtime/connection/adapter';
import { readJson } from '../runtime/parse/text';
import { idText, member } from '../runtime/webhook/webhook';

export interface StreamElementsTimings {
  /** Longest time for the socket, its welcome and the answers to the subscriptions. */
  open_ms: number;
  /** The server pings every 30 s; after this time without any frame the connection is dead. */
  silence_ms: number;
}

/** Longest token that a socket is moved with, in characters. */
const MAX_TOKEN = 4_000;
/** Longest pause that Astro may require. */
const MAX_PAUSE_MS = 3_600_000;
/** Time for the server's answer to the close of a moved socket. */
const LEAVE_MS = 3_000;

interface Listener {
  onMessage(text: string): void;
  onAlive(): void;
  /** Read for a socket that is being closed, which has no other backpressure. */
  full(): boolean;
  onMove(reconnect_token: string): void;
  onEnd(error: Error): void;
}

/** A socket of Astro. */
export class Socket {
  /** Resolves at the welcome; rejects when it does not arrive in time. */
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
    this.welcome = withTimeout(
      welcome,
      timings.open_ms,
      () => new LinkLost('StreamElements did not answer in time.'),
    ).catch((error: unknown) => {
      this.close();
      throw error;
    });
    let cause: Error | undefined;
    socket.on('error', (error: Error) => (cause ??= error));
    socket.on('unexpected-response', (_request, response: IncomingMessage) => {
      const pause_ms = Number(response.headers['retry-after'] ?? NaN) * 1000;
      cause = !(pause_ms >= 0 && pause_ms <= MAX_PAUSE_MS)
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

  /** Subscribes to a topic; returns null, or the reason of a refusal. */
  async subscribe(topic: string, room: string, token: string): Promise<string | null> {
    const nonce = randomUUID();
    const answer = new Promise<string | null>((resolve) => this.answers.set(nonce, resolve));
    const data = { topic, room, token, token_type: kindOf(token) };
    this.socket.send(JSON.stringify({ type: 'subscribe', nonce, data }));
    const late = () => new LinkLost('StreamElements did not answer in time.');
    return withTimeout(answer, this.timings.open_ms, late).finally(() => this.answers.delete(nonce));
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

  /** Closes a replaced socket; messages that were sent over it earlier are still read. */
  leave(): void {
    void closeGracefully(this.socket, LEAVE_MS, () => this.listener.full());
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
        // The token becomes part of a URL.
        return token === null || token.length > MAX_TOKEN ? this.close() : this.listener.onMove(token);
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
