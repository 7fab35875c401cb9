import { randomUUID } from 'node:crypto';
import { type WebSocket, WebSocketServer } from 'ws';
import { FakeCloud } from './cloud';

type Tip = Record<string, unknown> & { _id: string; createdAt: string };
interface Subscribed {
  topic: string;
  room: string;
}

/**
 * StreamElements' API and its gateway Astro: welcome, subscriptions that are answered by their nonce, pings, and a
 * server that sends its clients to another one with a token that restores what they are subscribed to.
 */
export class FakeStreamElements extends FakeCloud {
  /** Channel by token. */
  readonly channels = new Map<string, string>();
  private readonly tips = new Map<string, Tip[]>();
  private readonly subscribed = new Map<WebSocket, Subscribed[]>();
  private readonly restorable = new Map<string, Subscribed[]>();
  private readonly door = new WebSocketServer({ noServer: true });
  /** Answered instead of opening a socket, so many times. */
  refuse: { status: number; retry_after: number; times: number } | null = null;
  /** Subscribing to these topics is answered with an error. */
  readonly refused_topics = new Set<string>();
  /** Answered to everybody who subscribes. */
  subscribe_error: string | null = null;
  /** Sockets are not welcomed. */
  silent = false;
  /** Sockets that were opened. */
  opened = 0;
  /** Called as soon as a socket is welcome. */
  onWelcome = () => {};

  constructor() {
    super();
    this.on('GET /kappa/v2/channels/me', ({ headers }) => {
      const channel = this.channelOf(headers.authorization);
      return channel === null ? UNAUTHORIZED : { body: { _id: channel, provider: 'twitch', username: 'cool_user' } };
    });
    this.on('GET /kappa/v2/tips/*', ({ headers, path, query }) => {
      const channel = this.channelOf(headers.authorization);
      if (channel === null || path.split('/').pop() !== channel) return UNAUTHORIZED;
      const since = Number(query.get('after') ?? 0);
      const docs = (this.tips.get(channel) ?? []).filter(({ createdAt }) => Date.parse(createdAt) >= since);
      const [offset, limit] = [Number(query.get('offset') ?? 0), Number(query.get('limit') ?? 25)];
      return { body: { docs: docs.reverse().slice(offset, offset + limit), total: docs.length } };
    });
    this.server.on('upgrade', (request, socket, head) => {
      if (this.refuse !== null && this.refuse.times > 0) {
        const { status, retry_after } = this.refuse;
        this.refuse.times -= 1;
        return void socket.end(`HTTP/1.1 ${status} No\r\nRetry-After: ${retry_after}\r\nContent-Length: 0\r\n\r\n`);
      }
      const token = new URL(request.url ?? '/', 'http://astro').searchParams.get('reconnect_token');
      this.door.handleUpgrade(request, socket, head, (ws) => this.admit(ws, token));
    });
  }

  get astro_url(): string {
    return this.ws_base_url;
  }

  /** A tip that is paid now: told to who listens, and kept for the API. */
  tip(channel: string, of: Record<string, unknown> = {}, topic = 'channel.tips'): Tip {
    const at = new Date().toISOString();
    const tip = {
      donation: {
        user: { username: 'ExampleTipper', geo: 'ZZ', email: 'tipper@example.com', channel },
        message: '',
        amount: 4.2,
        currency: 'USD',
        paymentMethod: 'scheme',
      },
      _id: randomUUID().replaceAll('-', '').slice(0, 24),
      channel,
      provider: 'paypal',
      approved: 'allowed',
      status: 'success',
      createdAt: at,
      updatedAt: at,
      transactionId: '2YH79902JR1691017',
      ...of,
    };
    this.tips.set(channel, [...(this.tips.get(channel) ?? []), tip]);
    this.tell(channel, topic, tip);
    return tip;
  }

  /** Sends it again to who listens. */
  tell(channel: string, topic: string, tip: unknown): void {
    for (const ws of this.listening(channel, topic)) {
      const ts = new Date().toISOString();
      ws.send(JSON.stringify({ id: randomUUID(), ts, type: 'message', topic, room: channel, data: tip }));
    }
  }

  /** Bytes to whoever has a socket. */
  send(text: string | Buffer): void {
    for (const ws of this.subscribed.keys()) ws.send(text);
  }

  listening(channel: string, topic = 'channel.tips'): WebSocket[] {
    const has = ([, topics]: [WebSocket, Subscribed[]]) =>
      topics.some((one) => one.room === channel && one.topic === topic);
    return [...this.subscribed].filter(has).map(([ws]) => ws);
  }

  /** Asks every client to come to another server, and closes what stays after that. */
  drain(valid = true): void {
    for (const [ws, topics] of this.subscribed) {
      const reconnect_token = randomUUID();
      if (valid) this.restorable.set(reconnect_token, topics);
      const data = { message: 'The server is shutting down.', reconnect_token };
      ws.send(JSON.stringify({ type: 'reconnect', data }));
    }
  }

  ping(): void {
    for (const ws of this.subscribed.keys()) ws.ping();
  }

  override async close(): Promise<void> {
    for (const ws of this.door.clients) ws.terminate();
    await super.close();
  }

  private admit(ws: WebSocket, reconnect_token: string | null): void {
    this.opened += 1;
    const restored = reconnect_token === null ? [] : this.restorable.get(reconnect_token);
    if (restored === undefined) return void ws.close(4000);
    this.subscribed.set(ws, [...restored]);
    ws.on('error', () => undefined);
    ws.on('close', () => this.subscribed.delete(ws));
    ws.on('message', (bytes: Buffer) => this.answer(ws, bytes.toString()));
    if (this.silent) return;
    const data = { message: 'You are in a maze of dank memes, all alike.', client_id: randomUUID() };
    ws.send(JSON.stringify({ id: randomUUID(), ts: new Date().toISOString(), type: 'welcome', data }));
    this.onWelcome();
  }

  private answer(ws: WebSocket, text: string): void {
    const { type, nonce, data } = JSON.parse(text) as {
      type: string;
      nonce: string;
      data: Subscribed & { token: string; token_type: string };
    };
    const of = { id: randomUUID(), ts: new Date().toISOString(), type: 'response', nonce };
    const { topic, room, token } = data;
    if (this.subscribe_error !== null) return ws.send(JSON.stringify({ ...of, error: this.subscribe_error }));
    if (type !== 'subscribe' || this.refused_topics.has(topic) || this.channels.get(token) !== room) {
      const error = type === 'subscribe' ? 'err_unauthorized' : 'err_bad_request';
      return ws.send(JSON.stringify({ ...of, error, data: { message: 'human readable description' } }));
    }
    this.subscribed.get(ws)!.push({ topic, room });
    ws.send(JSON.stringify({ ...of, data: { message: 'successfully subscribed to topic', topic, room } }));
  }

  private channelOf(authorization: string | undefined): string | null {
    const token = /^(?:Bearer|apikey|oAuth) (.+)$/i.exec(authorization ?? '')?.[1];
    return (token !== undefined && this.channels.get(token)) || null;
  }
}

const UNAUTHORIZED = { status: 401, body: { statusCode: 401, error: 'Unauthorized', message: 'No token' } };
