import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type WebSocket, WebSocketServer } from 'ws';
import { SUBSCRIPTIONS } from '../ingest/twitch/subscriptions';
import type { FakeCall } from '../test/vendors/cloud';
import { FakeConduits } from '../test/vendors/twitch-conduits';
import { ROOT } from './harness';

/** Shares of a hundred notifications: most traffic of a busy channel is its chat. */
const MIX: readonly (readonly [string, number])[] = [
  ['channel.chat.message.v1.body.json', 80],
  ['channel.follow.v2.body.json', 8],
  ['channel.channel_points_custom_reward_redemption.add.v1.body.json', 6],
  ['channel.chat.notification.v1.resub.body.json', 3],
  ['channel.cheer.v1.body.json', 3],
];
const MESSAGE_ID = '@message@';
/** Members that identify an event. */
const OWN_IDS = ['message_id', 'id'];
const AT = '@at@';
const CHANNEL = '@channel@';
const MARKS = new RegExp(`(${MESSAGE_ID}|${AT}|${CHANNEL})`);

interface Payload {
  subscription: { type: string; version: string; condition: Record<string, string> };
  event: Record<string, unknown>;
}

/**
 * Frames in pieces, some of which are placeholders for each message's own values, in the proportions of {@link MIX}.
 */
function templates(): string[][] {
  return MIX.flatMap(([file, share]) => {
    const payload = JSON.parse(readFileSync(join(ROOT, 'test/fixtures/twitch', file), 'utf8')) as Payload;
    const { type: subscription_type, version: subscription_version } = payload.subscription;
    payload.subscription.condition.broadcaster_user_id = CHANNEL;
    payload.event.broadcaster_user_id = CHANNEL;
    for (const name of OWN_IDS) if (name in payload.event) payload.event[name] = MESSAGE_ID;
    if ('followed_at' in payload.event) payload.event['followed_at'] = AT;
    const metadata = { message_id: MESSAGE_ID, message_type: 'notification', message_timestamp: AT };
    const frame = JSON.stringify({ metadata: { ...metadata, subscription_type, subscription_version }, payload });
    return Array.from({ length: share }, () => frame.split(MARKS));
  });
}

interface Subscription {
  type: string;
  version: string;
  condition: Record<string, string>;
  transport: { session_id: string } | { session_id?: undefined; conduit_id: string };
}

interface Answer {
  status?: number;
  body?: unknown;
}

/** Subscriptions of a channel over a conduit: `channel.moderate` reports the acts of three other types as well. */
export const OVER_CONDUIT = SUBSCRIPTIONS.length - 3;
const CONDUITS = '/helix/eventsub/conduits';
/** Every owner has consented to everything. */
const ALL_SCOPES = { has: () => true } as unknown as ReadonlySet<string>;

/** A socket and the channel whose events it receives. */
interface Listener {
  ws: WebSocket;
  /** The subscribed channel; before a subscription an id of equal length, for sockets that only listen. */
  channel_id: string;
}

/**
 * A fast fake of Twitch's EventSub: a welcome for every socket, an answer for every subscription, and then
 * notifications at a rate: to all sockets in turn, of the channel that each has subscribed to, or with subscriptions
 * over a conduit to all shards in turn, of all channels.
 */
export class EventSubFake {
  subscriptions = 0;
  private readonly listeners: Listener[] = [];
  private readonly sessions = new Map<string, Listener>();
  private readonly server = createServer((request, response) => this.answer(request, response));
  private readonly door = new WebSocketServer({ server: this.server, path: '/ws', perMessageDeflate: false });
  private readonly frames = templates();
  private sent = 0;
  /** Channels with subscriptions over the conduit. */
  private channels: string[] = [];
  private readonly conduits = new FakeConduits({
    now: () => new Date().toISOString(),
    isConnected: (id) => this.sessions.has(id),
    send: () => undefined,
    consentOf: () => ALL_SCOPES,
    refusal: () => undefined,
  });

  async start(): Promise<this> {
    this.door.on('connection', (ws) => this.admit(ws));
    await new Promise<void>((listening) => this.server.listen(0, '127.0.0.1', listening));
    return this;
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Sends at the rate for `ms` milliseconds; returns the number of notifications. */
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

  /** Open sockets. */
  get sockets(): number {
    return this.listeners.length;
  }

  private one(): void {
    const n = this.sent;
    this.sent += 1;
    const { ws, channel_id } = this.receiverOf(n);
    const own: Record<string, string> = {
      [MESSAGE_ID]: randomUUID(),
      [AT]: new Date().toISOString(),
      [CHANNEL]: channel_id,
    };
    ws.send(this.frames[(n * 37) % this.frames.length]!.map((piece) => own[piece] ?? piece).join(''));
  }

  private receiverOf(n: number): Listener {
    if (this.channels.length === 0) return this.listeners[n % this.listeners.length]!;
    const [conduit] = this.conduits.all.values();
    const { session_id } = conduit!.shards[n % conduit!.shards.length]!;
    const { ws } = this.sessions.get(session_id ?? '')!;
    return { ws, channel_id: this.channels[n % this.channels.length]! };
  }

  private admit(ws: WebSocket): void {
    const listener: Listener = { ws, channel_id: '0000000' };
    const id = randomUUID();
    this.listeners.push(listener);
    this.sessions.set(id, listener);
    ws.on('close', () => {
      this.listeners.splice(this.listeners.indexOf(listener), 1);
      this.sessions.delete(id);
      this.conduits.disconnected(id);
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
      const { status = 200, body } = this.answerTo(request, Buffer.concat(chunks).toString());
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}));
    });
  }

  private answerTo({ method, url }: IncomingMessage, body: string): Answer {
    const { pathname, searchParams: query } = new URL(url!, 'http://fake');
    const call = { body, query } as FakeCall;
    switch (`${method} ${pathname}`) {
      case 'POST /oauth2/token':
        return { body: { access_token: 'app', expires_in: 5_000_000 } };
      case `GET ${CONDUITS}`:
        return this.conduits.list() ?? {};
      case `POST ${CONDUITS}`:
        return this.conduits.make(call) ?? {};
      case `GET ${CONDUITS}/shards`:
        return this.conduits.shards(call) ?? {};
      case `PATCH ${CONDUITS}/shards`:
        return this.conduits.assign(call) ?? {};
      case 'GET /helix/eventsub/subscriptions':
        return this.conduits.subscriptions(call) ?? {};
      case 'POST /helix/eventsub/subscriptions':
        return this.subscribe(JSON.parse(body) as Subscription);
      default:
        return { body: { data: [] } };
    }
  }

  private subscribe({ transport, ...asked }: Subscription): Answer {
    this.subscriptions += 1;
    const { broadcaster_user_id } = asked.condition;
    if (transport.session_id === undefined) {
      if (broadcaster_user_id !== undefined && asked.type === 'channel.cheer') this.channels.push(broadcaster_user_id);
      return this.conduits.subscribe({ ...asked, conduit_id: transport.conduit_id }) ?? {};
    }
    const listener = this.sessions.get(transport.session_id);
    if (listener && broadcaster_user_id !== undefined) listener.channel_id = broadcaster_user_id;
    const data = [{ id: randomUUID(), status: 'enabled', created_at: new Date().toISOString() }];
    return { status: 202, body: { data } };
  }
}
