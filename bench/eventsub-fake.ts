import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type WebSocket, WebSocketServer } from 'ws';
import { ROOT } from './harness';

/** Of a hundred notifications: most of a busy channel is its chat. */
const MIX: readonly (readonly [string, number])[] = [
  ['channel.chat.message.v1.body.json', 80],
  ['channel.follow.v2.body.json', 8],
  ['channel.channel_points_custom_reward_redemption.add.v1.body.json', 6],
  ['channel.chat.notification.v1.resub.body.json', 3],
  ['channel.cheer.v1.body.json', 3],
];
const MESSAGE_ID = '@message@';
const AT = '@at@';
const CHANNEL = '@channel@';
const MARKS = new RegExp(`(${MESSAGE_ID}|${AT}|${CHANNEL})`);

interface Payload {
  subscription: { type: string; version: string; condition: Record<string, string> };
  event: Record<string, unknown>;
}

/** Frames in pieces, some of them marks of what each message has its own of, in the proportions of {@link MIX}. */
function templates(): string[][] {
  return MIX.flatMap(([file, share]) => {
    const payload = JSON.parse(readFileSync(join(ROOT, 'test/fixtures/twitch', file), 'utf8')) as Payload;
    const { type: subscription_type, version: subscription_version } = payload.subscription;
    payload.subscription.condition.broadcaster_user_id = CHANNEL;
    payload.event.broadcaster_user_id = CHANNEL;
    const metadata = { message_id: MESSAGE_ID, message_type: 'notification', message_timestamp: AT };
    const frame = JSON.stringify({ metadata: { ...metadata, subscription_type, subscription_version }, payload });
    return Array.from({ length: share }, () => frame.split(MARKS));
  });
}

interface Subscription {
  condition: { broadcaster_user_id?: string };
  transport: { session_id: string };
}

/** Whose events a socket gets. */
interface Listener {
  ws: WebSocket;
  /** That it subscribed to; until then one of as many digits, as for whoever only listens. */
  channel_id: string;
}

/**
 * EventSub as Twitch speaks it, made to send fast: a welcome for every socket, an answer for every subscription, and
 * then notifications at a rate, to all sockets in turn, of the channel that each has subscribed to.
 */
export class EventSubFake {
  subscriptions = 0;
  private readonly listeners: Listener[] = [];
  private readonly sessions = new Map<string, Listener>();
  private readonly server = createServer((request, response) => this.answer(request, response));
  private readonly door = new WebSocketServer({ server: this.server, path: '/ws', perMessageDeflate: false });
  private readonly frames = templates();
  private sent = 0;

  async start(): Promise<this> {
    this.door.on('connection', (ws) => this.admit(ws));
    await new Promise<void>((listening) => this.server.listen(0, '127.0.0.1', listening));
    return this;
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Sends at the rate for so long; answers with how many were sent. */
  async send(per_second: number, ms: number): Promise<number> {
    const begun = performance.now();
    let sent = 0;
    for (;;) {
      const passed = performance.now() - begun;
      const due = Math.floor((Math.min(passed, ms) * per_second) / 1000);
      for (; sent < due; sent += 1) this.one();
      if (passed >= ms) return sent;
      await new Promise((resume) => setTimeout(resume, 2));
    }
  }

  async stop(): Promise<void> {
    for (const { ws } of this.listeners) ws.terminate();
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }

  private one(): void {
    const n = this.sent;
    this.sent += 1;
    const { ws, channel_id } = this.listeners[n % this.listeners.length]!;
    const own: Record<string, string> = {
      [MESSAGE_ID]: randomUUID(),
      [AT]: new Date().toISOString(),
      [CHANNEL]: channel_id,
    };
    ws.send(this.frames[(n * 37) % this.frames.length]!.map((piece) => own[piece] ?? piece).join(''));
  }

  private admit(ws: WebSocket): void {
    const listener: Listener = { ws, channel_id: '0000000' };
    const id = randomUUID();
    this.listeners.push(listener);
    this.sessions.set(id, listener);
    ws.on('close', () => {
      this.listeners.splice(this.listeners.indexOf(listener), 1);
      this.sessions.delete(id);
    });
    const session = { id, status: 'connected', keepalive_timeout_seconds: 600, reconnect_url: null };
    const metadata = { message_id: randomUUID(), message_type: 'session_welcome' };
    const welcome = { metadata: { ...metadata, message_timestamp: new Date().toISOString() }, payload: { session } };
    ws.send(JSON.stringify(welcome));
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const made = request.method === 'POST';
      if (made) this.subscribe(JSON.parse(Buffer.concat(chunks).toString()) as Subscription);
      const data = made ? [{ id: randomUUID(), status: 'enabled', created_at: new Date().toISOString() }] : [];
      response.writeHead(made ? 202 : 200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
    });
  }

  private subscribe({ condition, transport }: Subscription): void {
    this.subscriptions += 1;
    const listener = this.sessions.get(transport.session_id);
    const { broadcaster_user_id } = condition;
    if (listener && broadcaster_user_id !== undefined) listener.channel_id = broadcaster_user_id;
  }
}
