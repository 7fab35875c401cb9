import { randomUUID } from 'node:crypto';
import { type WebSocket, WebSocketServer } from 'ws';
import { CallBuckets } from './call-buckets';
import type { FakeAnswer, FakeCall } from './cloud';
import { FakeTokens } from './cloud-tokens';
import { FakeVendor, type LoginAnswer } from './fake';
import { FakeConduits, type FakeSubscription as Subscription } from './twitch-conduits';

type Members = Record<string, unknown>;

interface Session {
  id: string;
  ws: WebSocket;
  subscriptions: Map<string, Subscription>;
  keepalive: NodeJS.Timeout | undefined;
  window: NodeJS.Timeout | undefined;
}

/** What Helix shows of a channel. */
export interface FakeTwitchChannel {
  stream: Members | null;
  hype_train: Members | null;
  polls: Members[];
  predictions: Members[];
  goals: Members[];
  /** Text of its profile. */
  description?: string;
}

export const TWITCH_CLIENT = 'twitch-client';
export const TWITCH_SECRET = 'twitch-secret';

/**
 * Twitch's API and EventSub over WebSocket: welcome, keepalives, the window for subscribing, moves, revocations, the
 * vendor's close codes, and the same event once to every subscription, each with an id of its own.
 */
export class FakeTwitch extends FakeVendor {
  readonly tokens = new FakeTokens('twitch');
  readonly channels = new Map<string, FakeTwitchChannel>();
  readonly sessions = new Map<string, Session>();
  /** By type, or by type and version: what a subscription is refused with. */
  readonly refused = new Map<string, { status: number; message: string }>();
  /** Calls of subscriptions by user tokens. */
  readonly buckets = new CallBuckets();
  /** Most subscription calls that were open at the same time. */
  most_subscribing = 0;
  /** What clients sent over the socket, which must be nothing. */
  inbound = 0;
  /** Close codes of sockets that this side closed. */
  readonly closed: number[] = [];
  keepalive_seconds = 10;
  window_ms = 10_000;
  grace_ms = 30_000;
  /** Nothing is sent any more, keepalives neither: the connection looks alive and is not. */
  silent = false;
  /** This clock less the real one. */
  skew_ms = 0;
  /** Its times are told apart within a millisecond, as Twitch's are. */
  private nanoseconds = 0;
  private latest = '';
  private readonly door = new WebSocketServer({ noServer: true });
  /** Sessions that have had a subscription to a channel. */
  private readonly by_channel = new Map<string, Set<Session>>();
  readonly conduits = new FakeConduits({
    now: () => this.now(),
    isConnected: (id) => this.sessions.get(id)?.ws.readyState === 1,
    send: (id, message) => this.send(this.sessions.get(id)!, message),
    consentOf: (channel_id) => this.tokens.scopesOf(channel_id),
    refusal: (type, version) => this.refused.get(type) ?? this.refused.get(`${type}/${version}`),
  });

  constructor() {
    super(LOGINS);
    const asApp = (handler: (call: FakeCall) => FakeAnswer) => (call: FakeCall) =>
      this.tokens.of(call.headers.authorization)?.owner === null
        ? handler(call)
        : { status: 401, body: { error: 'Unauthorized', status: 401, message: 'app access token required' } };
    const { conduits } = this;
    this.on('GET /helix/eventsub/conduits', asApp(conduits.list));
    this.on('POST /helix/eventsub/conduits', asApp(conduits.make));
    this.on('PATCH /helix/eventsub/conduits', asApp(conduits.update));
    this.on('DELETE /helix/eventsub/conduits', asApp(conduits.remove));
    this.on('GET /helix/eventsub/conduits/shards', asApp(conduits.shards));
    this.on('PATCH /helix/eventsub/conduits/shards', asApp(conduits.assign));
    this.on('GET /helix/eventsub/subscriptions', asApp(conduits.subscriptions));
    this.on('DELETE /helix/eventsub/subscriptions', asApp(conduits.unsubscribe));
    const guarded = (handler: (call: FakeCall) => FakeAnswer) => (call: FakeCall) =>
      this.tokens.of(call.headers.authorization) === null || call.headers['client-id'] === undefined
        ? { status: 401, body: { error: 'Unauthorized', status: 401, message: 'Invalid OAuth token' } }
        : handler(call);
    this.on(
      'POST /helix/eventsub/subscriptions',
      guarded((call) => {
        this.most_subscribing = Math.max(this.most_subscribing, this.openCalls(call.path));
        return this.buckets.spend(call.headers.authorization ?? '', () => this.subscribe(call));
      }),
    );
    this.on(
      'GET /helix/streams',
      guarded(({ query }) => this.streams(query.getAll('user_id'))),
    );
    this.on(
      'GET /helix/hypetrain/status',
      guarded(({ query }) =>
        this.listed(query.get('broadcaster_id'), ({ hype_train }) => [{ current: hype_train, all_time_high: null }]),
      ),
    );
    for (const name of ['polls', 'predictions', 'goals'] as const) {
      this.on(
        `GET /helix/${name}`,
        guarded(({ query }) => this.listed(query.get('broadcaster_id'), (of) => of[name])),
      );
    }
    this.on(
      'GET /helix/users',
      guarded((call) => this.users(call)),
    );
    for (const [path, set_id] of Object.entries({ 'chat/badges': 'subscriber', 'chat/badges/global': 'moderator' })) {
      const image_url_2x = `https://static-cdn.jtvnw.net/badges/v1/${set_id}/2`;
      const badges = [{ set_id, versions: [{ id: '1', image_url_2x }] }];
      this.on(
        `GET /helix/${path}`,
        guarded(() => ({ body: { data: badges } })),
      );
    }
    this.on('GET /oauth2/validate', (call) => this.validated(call));
    this.on('POST /oauth2/token', (call) => this.token(call));
    this.on('POST /oauth2/revoke', () => ({ status: 200 }));
    this.server.on('upgrade', (request, socket, head) => {
      const url = new URL(request.url!, 'ws://fake');
      if (url.pathname !== '/ws') return void socket.destroy();
      this.door.handleUpgrade(request, socket, head, (ws) => this.admit(ws, url.searchParams.get('id')));
    });
  }

  get eventsub_url(): string {
    return `${this.ws_base_url}/ws`;
  }

  channel(id: string): FakeTwitchChannel {
    const channel = this.channels.get(id) ?? { stream: null, hype_train: null, polls: [], predictions: [], goals: [] };
    this.channels.set(id, channel);
    return channel;
  }

  /** Subscriptions to a channel, over all sessions. */
  subscriptionsOf(channel_id: string): Subscription[] {
    return this.of(channel_id).flatMap(({ subscriptions }) =>
      [...subscriptions.values()].filter(({ condition }) => Object.values(condition).includes(channel_id)),
    );
  }

  /**
   * Sends an event to every subscription to it; answers with how many there were. A session for which `metadata` is
   * null receives nothing.
   */
  notify(
    channel_id: string,
    type: string,
    event: Members,
    metadata: Members | ((session: Session) => Members | null) = {},
  ): number {
    let sent = 0;
    for (const session of this.by_channel.get(channel_id) ?? []) {
      const subscription = [...session.subscriptions.values()].find(
        (one) => one.type === type && matches(one.condition, channel_id, event),
      );
      // What is sent over a socket that is being closed reaches nobody.
      if (subscription === undefined || session.ws.readyState !== session.ws.OPEN) continue;
      const own = typeof metadata === 'function' ? metadata(session) : metadata;
      if (own === null) continue;
      this.send(session, notification(subscription, event, this.now(), own));
      sent += 1;
    }
    const over = this.conduits.deliver(
      (one) => one.type === type && matches(one.condition, channel_id, event),
      (one) => notification(one, event, this.now(), typeof metadata === 'function' ? {} : metadata),
    );
    return sent + over;
  }

  /** A frame as it stands, to every session of the channel. */
  frame(channel_id: string, text: string): void {
    for (const session of this.of(channel_id)) if (!this.silent) session.ws.send(text);
  }

  /** Asks the sessions of a channel to move; answers with their new addresses. */
  move(channel_id: string): string[] {
    return this.of(channel_id).map((session) => {
      const reconnect_url = `${this.eventsub_url}?id=${session.id}`;
      const status = { id: session.id, status: 'reconnecting', reconnect_url, keepalive_timeout_seconds: null };
      this.send(session, this.message('session_reconnect', { session: status }));
      setTimeout(() => this.end(session, 4004), this.grace_ms).unref();
      return reconnect_url;
    });
  }

  /** Ends subscriptions to a channel, all of them or those of a type. */
  revoke(channel_id: string, status: string, type?: string): void {
    for (const session of this.of(channel_id)) {
      for (const [key, { created_at: _at, ...subscription }] of session.subscriptions) {
        if (type !== undefined && subscription.type !== type) continue;
        session.subscriptions.delete(key);
        this.send(session, this.message('revocation', { subscription: { ...subscription, status } }));
      }
    }
    this.conduits.revoke(channel_id, status, (subscription) => this.message('revocation', { subscription }), type);
  }

  /** Closes the sockets of a channel. */
  drop(channel_id: string, code = 4000): void {
    for (const session of this.of(channel_id)) this.end(session, code);
  }

  /** Closes the socket of one session. */
  dropSession(session_id: string, code = 4000): void {
    this.end(this.sessions.get(session_id)!, code);
  }

  of(channel_id: string): Session[] {
    return [...(this.by_channel.get(channel_id) ?? [])].filter(({ subscriptions }) =>
      [...subscriptions.values()].some(({ condition }) => Object.values(condition).includes(channel_id)),
    );
  }

  override async close(): Promise<void> {
    for (const session of this.sessions.values()) this.forget(session);
    await super.close();
  }

  private now(): string {
    const time = new Date(Date.now() + this.skew_ms).toISOString();
    this.nanoseconds = time === this.latest ? this.nanoseconds + 1 : 0;
    this.latest = time;
    return time.replace('Z', `${String(this.nanoseconds).padStart(6, '0')}Z`);
  }

  private admit(ws: WebSocket, moved_from: string | null): void {
    const before = moved_from === null ? undefined : this.sessions.get(moved_from);
    if (moved_from !== null && before === undefined) return ws.close(4007);
    const session: Session = {
      id: randomUUID(),
      ws,
      subscriptions: before?.subscriptions ?? new Map(),
      keepalive: undefined,
      window: undefined,
    };
    this.sessions.set(session.id, session);
    for (const { condition } of session.subscriptions.values()) this.index(session, condition);
    ws.on('message', () => {
      this.inbound += 1;
      this.end(session, 4001);
    });
    ws.on('close', () => this.forget(session));
    const status = {
      id: session.id,
      status: 'connected',
      connected_at: this.now(),
      keepalive_timeout_seconds: this.keepalive_seconds,
      reconnect_url: null,
    };
    ws.send(JSON.stringify(this.message('session_welcome', { session: status })));
    // The old socket has nothing of its own any more; it stays open until its client closes it.
    if (before) {
      before.subscriptions = new Map();
      this.conduits.moved(before.id, session.id);
    }
    session.keepalive = setInterval(
      () => this.send(session, this.message('session_keepalive', {})),
      this.keepalive_seconds * 1000,
    );
    session.keepalive.unref();
    session.window = setTimeout(() => {
      if (session.subscriptions.size === 0 && !this.conduits.uses(session.id)) this.end(session, 4003);
    }, this.window_ms);
    session.window.unref();
  }

  private end(session: Session, code: number): void {
    if (!this.sessions.has(session.id)) return;
    this.closed.push(code);
    session.ws.close(code);
    this.forget(session);
  }

  private forget(session: Session): void {
    clearInterval(session.keepalive);
    clearTimeout(session.window);
    this.sessions.delete(session.id);
    this.conduits.disconnected(session.id);
    for (const { condition } of session.subscriptions.values())
      for (const id of Object.values(condition)) this.by_channel.get(id)?.delete(session);
  }

  private index(session: Session, condition: Subscription['condition']): void {
    for (const id of Object.values(condition))
      this.by_channel.set(id, (this.by_channel.get(id) ?? new Set()).add(session));
  }

  private send(session: Session, message: object): void {
    if (!this.silent) session.ws.send(JSON.stringify(message));
  }

  private message(message_type: string, payload: object): object {
    return { metadata: { message_id: randomUUID(), message_type, message_timestamp: this.now() }, payload };
  }

  private subscribe(call: FakeCall): FakeAnswer {
    const { type, version, condition, transport } = JSON.parse(call.body) as {
      type: string;
      version: string;
      condition: Record<string, string>;
      transport: { method: string; session_id: string; conduit_id: string };
    };
    if (transport.method === 'conduit') return this.subscribeApp(call, { type, version, condition, ...transport });
    const refused = this.refused.get(type) ?? this.refused.get(`${type}/${version}`);
    if (refused) return { status: refused.status, body: { error: 'Refused', ...refused } };
    const session = this.sessions.get(transport.session_id);
    if (session === undefined) return { status: 400, body: { status: 400, message: 'session does not exist' } };
    const key = `${type} ${JSON.stringify(condition)}`;
    if (session.subscriptions.has(key)) return { status: 409, body: { status: 409, message: 'already exists' } };
    const subscription = { id: randomUUID(), type, version, condition, created_at: this.now() };
    session.subscriptions.set(key, subscription);
    this.index(session, condition);
    const row = { ...subscription, status: 'enabled', cost: 0, transport };
    return { status: 202, body: { data: [row], total: 1, total_cost: 0, max_total_cost: 10 } };
  }

  private subscribeApp({ headers }: FakeCall, asked: Parameters<FakeConduits['subscribe']>[0]): FakeAnswer {
    if (this.tokens.of(headers.authorization)?.owner !== null)
      return { status: 401, body: { error: 'Unauthorized', status: 401, message: 'app access token required' } };
    return this.conduits.subscribe(asked);
  }

  private listed(id: string | null, read: (channel: FakeTwitchChannel) => (Members | null)[]): FakeAnswer {
    const channel = this.channels.get(id ?? '');
    return { body: { data: channel ? read(channel).filter((row) => row !== null) : [], pagination: {} } };
  }

  private streams(user_ids: readonly string[]): FakeAnswer {
    const data = user_ids.flatMap((id) => this.channels.get(id)?.stream ?? []);
    return { body: { data, pagination: {} } };
  }

  private users({ headers, query }: FakeCall): FakeAnswer {
    const logins = query.getAll('login');
    if (logins.some((login) => !/^[a-z0-9_]{1,25}$/.test(login)))
      return { status: 400, body: { error: 'Bad Request', status: 400, message: 'Bad Identifiers' } };
    const ids = query.getAll('id');
    if (logins.length + ids.length > 0) {
      const found = [...this.channels].filter(([id]) => logins.includes(`login_${id}`) || ids.includes(id));
      const data = found.map(([id, { description = '' }]) => ({
        ...{ id, login: `login_${id}`, display_name: `Name_${id}`, type: '', broadcaster_type: 'affiliate' },
        ...{ description, profile_image_url: '' },
      }));
      return { body: { data } };
    }
    const id = this.tokens.of(headers.authorization)!.owner;
    return { body: { data: [{ id, login: `login_${id}`, display_name: `Name_${id}`, profile_image_url: '' }] } };
  }

  private validated({ headers }: FakeCall): FakeAnswer {
    const grant = this.tokens.of(headers.authorization);
    if (grant === null) return { status: 401, body: { status: 401, message: 'invalid access token' } };
    const { owner: user_id, scopes } = grant;
    return { body: { client_id: TWITCH_CLIENT, login: `login_${user_id}`, scopes, user_id, expires_in: 14_000 } };
  }

  private token({ body }: FakeCall): FakeAnswer {
    const form = new URLSearchParams(body);
    if (form.get('grant_type') === 'client_credentials') {
      if (form.get('client_secret') !== TWITCH_SECRET)
        return { status: 403, body: { status: 403, message: 'invalid client secret' } };
      const { access_token } = this.tokens.give(null);
      return { body: { access_token, expires_in: 5_000_000, token_type: 'bearer' } };
    }
    const grant =
      form.get('grant_type') === 'refresh_token'
        ? this.tokens.refresh(form.get('refresh_token') ?? '')
        : this.tokens.exchange(form.get('code') ?? '');
    if (grant === null) return { status: 400, body: { status: 400, message: 'Invalid refresh token' } };
    const { access_token, refresh_token, scopes } = grant;
    return { body: { access_token, refresh_token, expires_in: 14_000, scope: scopes, token_type: 'bearer' } };
  }
}

/** A raid names two channels: each subscription has its own. */
function matches(condition: Record<string, string>, channel_id: string, event: Members): boolean {
  const named = ['broadcaster_user_id', 'to_broadcaster_user_id', 'from_broadcaster_user_id'].filter(
    (name) => condition[name] !== undefined,
  );
  return named.every((name) => condition[name] === channel_id && (event[name] ?? channel_id) === channel_id);
}

function notification(
  subscription: Subscription,
  event: Members,
  message_timestamp: string,
  metadata: Members,
): object {
  const { type: subscription_type, version: subscription_version } = subscription;
  const message = { message_id: randomUUID(), message_type: 'notification', message_timestamp };
  return {
    metadata: { ...message, subscription_type, subscription_version, ...metadata },
    payload: { subscription: { ...subscription, status: 'enabled', cost: 0 }, event },
  };
}

/** Who logs in at `id.twitch.tv` and `api.twitch.tv`. */
const LOGINS: LoginAnswer = ({ method, path, headers, token }, people) => {
  if (method === 'GET' && path === '/oauth2/validate') {
    const person = people.get(token('OAuth')) ?? people.get(token('Bearer'));
    if (person === undefined) return { status: 401, body: { status: 401, message: 'invalid access token' } };
    const { client_id, id: user_id, name, scopes = [] } = person;
    return { status: 200, body: { client_id, login: name.toLowerCase(), scopes, user_id, expires_in: 14_000 } };
  }
  if (method === 'GET' && path === '/helix/users') {
    const person = people.get(token('Bearer'));
    if (person === undefined || headers['client-id'] !== person.client_id)
      return {
        status: 401,
        body: { error: 'Unauthorized', status: 401, message: 'Client ID and OAuth token do not match' },
      };
    const { id, name, email, avatar_url = '' } = person;
    const user = { id, login: name.toLowerCase(), display_name: name, type: '', broadcaster_type: '' };
    return { status: 200, body: { data: [{ ...user, description: '', profile_image_url: avatar_url, email }] } };
  }
  return { status: 404, body: { error: 'Not Found', status: 404, message: '' } };
};
