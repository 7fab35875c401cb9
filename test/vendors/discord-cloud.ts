import { randomUUID } from 'node:crypto';
import { type WebSocket, WebSocketServer } from 'ws';
import { FakeTokens } from './cloud-tokens';
import type { FakeCall, FakeHandler } from './cloud';
import { FakeDiscordRest } from './discord-rest';
import { FakeVendor, type LoginAnswer } from './fake';

const MESSAGE_CONTENT = 1 << 15;

interface Session {
  id: string;
  /** What was said in it, to be repeated to who resumes. */
  said: { s: number; t: string; d: unknown }[];
  socket: WebSocket | null;
}

/** `discord.com/api/v10/gateway/bot` and the gateway: hello, heartbeats, identify, resume with what was missed. */
export class FakeDiscord extends FakeVendor {
  readonly bot_tokens = new Set<string>();
  readonly rest = new FakeDiscordRest();
  /** Of who lets the bot into a guild. */
  readonly tokens = new FakeTokens('discord');
  private readonly sessions = new Map<string, Session>();
  private readonly door = new WebSocketServer({ noServer: true });
  heartbeat_interval = 45_000;
  remaining = 1_000;
  shards = 1;
  /** Sessions of fewer shards are refused. */
  least_shards = 1;
  readonly identified_as: unknown[] = [];
  /** Intents of the newest session. */
  intents = 0;
  /** Whether the intent of message content is switched on. */
  may_read = true;
  beats = 0;
  identified = 0;
  resumed = 0;
  /** Heartbeats are not answered. */
  deaf = false;
  /** Where sessions are told to go on; else here. */
  resume_url: string | null = null;

  constructor() {
    super(LOGINS);
    this.on('GET /api/v10/gateway/bot', ({ headers }) => {
      const token = /^Bot (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
      if (!this.bot_tokens.has(token)) return { status: 401, body: { message: '401: Unauthorized', code: 0 } };
      const limit = { total: 1000, remaining: this.remaining, reset_after: 60_000, max_concurrency: 1 };
      return { body: { url: this.ws_base_url, shards: this.shards, session_start_limit: limit } };
    });
    this.on('POST /api/v10/oauth2/token', ({ body }) => {
      const granted = this.tokens.exchange(new URLSearchParams(body).get('code') ?? '');
      if (granted === null) return { status: 400, body: { error: 'invalid_grant' } };
      const { access_token, refresh_token, owner, scopes } = granted;
      const guild = { id: owner, name: `Guild ${owner}`, icon: null };
      const of = { access_token, refresh_token, expires_in: 604_800, scope: scopes.join(' '), token_type: 'Bearer' };
      return { body: { ...of, guild } };
    });
    this.server.on('upgrade', (request, socket, head) => {
      this.door.handleUpgrade(request, socket, head, (ws) => this.admit(ws));
    });
  }

  protected override handlerOf(asked: FakeCall): FakeHandler {
    const token = /^Bot (.+)$/.exec(asked.headers.authorization ?? '')?.[1] ?? '';
    const answer = this.rest.answer(asked, this.bot_tokens.has(token));
    return answer === undefined ? super.handlerOf(asked) : () => answer;
  }

  /** Says it in every session; who is away gets it when they resume. */
  say(t: string, d: unknown): void {
    for (const session of this.sessions.values()) {
      const word = { s: session.said.length + 1, t, d };
      session.said.push(word);
      session.socket?.send(JSON.stringify({ op: 0, ...word }));
    }
  }

  /** Bytes to every socket. */
  send(bytes: string | Buffer): void {
    for (const ws of this.door.clients) ws.send(bytes);
  }

  closeAll(code: number): void {
    for (const ws of this.door.clients) ws.close(code);
  }

  /** Nobody can go on. */
  forgetSessions(): void {
    this.sessions.clear();
  }

  get connected(): number {
    return [...this.sessions.values()].filter(({ socket }) => socket !== null).length;
  }

  override async close(): Promise<void> {
    for (const ws of this.door.clients) ws.terminate();
    await super.close();
  }

  private admit(ws: WebSocket): void {
    ws.on('error', () => undefined);
    ws.on('message', (bytes: Buffer) => this.answer(ws, JSON.parse(bytes.toString()) as { op: number; d: any }));
    ws.on('close', () => {
      for (const session of this.sessions.values()) if (session.socket === ws) session.socket = null;
    });
    ws.send(JSON.stringify({ op: 10, d: { heartbeat_interval: this.heartbeat_interval } }));
  }

  private answer(ws: WebSocket, { op, d }: { op: number; d: any }): void {
    if (op === 1) {
      this.beats += 1;
      if (!this.deaf) ws.send(JSON.stringify({ op: 11 }));
      return;
    }
    if (!this.bot_tokens.has(d?.token)) return ws.close(4004);
    if (op === 2) {
      this.intents = d.intents as number;
      if (!this.may_read && (d.intents & MESSAGE_CONTENT) !== 0) return ws.close(4014);
      return this.identify(ws, d.shard as [number, number]);
    }
    if (op !== 6) return ws.close(4001);
    const session = this.sessions.get(d.session_id);
    if (session === undefined) return ws.send(JSON.stringify({ op: 9, d: false }));
    this.resumed += 1;
    // A session has one socket: who is replaced hears of it.
    const before = session.socket;
    session.socket = ws;
    if (before !== ws) before?.close(4000);
    for (const word of session.said.filter(({ s }) => s > d.seq)) ws.send(JSON.stringify({ op: 0, ...word }));
    const word = { s: session.said.length + 1, t: 'RESUMED', d: {} };
    session.said.push(word);
    ws.send(JSON.stringify({ op: 0, ...word }));
  }

  private identify(ws: WebSocket, shard: [number, number]): void {
    this.identified_as.push(shard);
    if (shard[1] < this.least_shards) return ws.close(4011);
    this.identified += 1;
    const id = randomUUID();
    const user = { id: '1', username: 'lumio', bot: true };
    const d = { v: 10, user, guilds: [], session_id: id, resume_gateway_url: this.resume_url ?? this.ws_base_url };
    const session: Session = { id, said: [{ s: 1, t: 'READY', d }], socket: ws };
    this.sessions.set(id, session);
    ws.send(JSON.stringify({ op: 0, ...session.said[0] }));
  }
}

/** Who logs in at `discord.com/api/v10`. */
const LOGINS: LoginAnswer = ({ method, path, token }, people) => {
  const person = people.get(token('Bearer'));
  if (person === undefined) return { status: 401, body: { message: '401: Unauthorized', code: 0 } };
  const { client_id, id, name, email, scopes = ['identify'] } = person;
  const user = { id, username: name.toLowerCase(), global_name: name, avatar: 'a1b2c3', discriminator: '0' };
  if (method === 'GET' && path === '/api/v10/oauth2/@me') {
    const application = { id: client_id, name: 'App', icon: null, description: '', bot_public: false };
    const expires = new Date(Date.now() + 604_800_000).toISOString();
    return { status: 200, body: { application, scopes, expires, user } };
  }
  if (method === 'GET' && path === '/api/v10/users/@me') return { status: 200, body: { ...user, email } };
  return { status: 404, body: { message: '404: Not Found', code: 0 } };
};
