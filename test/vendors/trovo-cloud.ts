import { randomUUID } from 'node:crypto';
import { type WebSocket, WebSocketServer } from 'ws';
import type { FakeAnswer, FakeCall } from './cloud';
import { FakeTokens } from './cloud-tokens';
import { FakeVendor, type LoginAnswer } from './fake';

export interface FakeTrovoChannel {
  channel_id: string;
  username: string;
  is_live: boolean;
  title: string;
  category_id: string;
  category_name: string;
  viewers: number;
  followers: number;
  started_at: string;
}

type Item = Record<string, unknown>;

export const TROVO_CLIENT = 'trovo-client';

const CHAT_TOKEN_MS = 20_000;
const HISTORY = 50;

const TROVO_EMOTE = { name: 'hype', description: 'hype', url: 'https://img.trovo.live/emotes/hype.png', status: '1' };

/**
 * Trovo's API and chat: a token that lives 20 seconds, AUTH, PING by the gap that the last answer asked for, and the
 * newest messages again in the first CHAT frame of every connection.
 */
export class FakeTrovo extends FakeVendor {
  readonly tokens = new FakeTokens('trovo');
  readonly channels = new Map<string, FakeTrovoChannel>();
  private readonly chat_tokens = new Map<string, { channel_id: string; until: number }>();
  private readonly sockets_of = new Map<string, Set<WebSocket>>();
  private readonly history = new Map<string, Item[]>();
  private readonly door = new WebSocketServer({ noServer: true });
  /** Seconds that clients are asked to leave between two PINGs. */
  gap = 30;
  pings = 0;
  /** PINGs are heard and not answered: the connection looks alive and is not. */
  deaf = false;

  constructor() {
    super(LOGINS);
    const guarded = (handler: (call: FakeCall) => FakeAnswer) => (call: FakeCall) =>
      this.tokens.of(call.headers.authorization) === null
        ? { status: 401, body: { status: 11704, error: 'AccessToken is not valid', message: 'Unauthorized' } }
        : handler(call);
    const identified = (handler: (call: FakeCall) => FakeAnswer) => (call: FakeCall) =>
      call.headers['client-id'] === undefined
        ? { status: 401, body: { status: 11703, error: 'no client' } }
        : handler(call);
    this.on('POST /openplatform/exchangetoken', (call) => this.token(call, 'code'));
    this.on('POST /openplatform/refreshtoken', (call) => this.token(call, 'refresh_token'));
    this.on(
      'GET /openplatform/chat/token',
      guarded((call) => this.chatToken(this.ownerOf(call))),
    );
    this.on(
      'GET /openplatform/chat/channel-token/*',
      identified((call) => this.chatToken(call.path.split('/').pop()!)),
    );
    this.on(
      'POST /openplatform/channels/id',
      identified((call) => this.channelInfo(call)),
    );
    this.on(
      'POST /openplatform/getusers',
      identified(({ body }) => {
        const { user } = JSON.parse(body) as { user: string[] };
        const users = [...this.channels.values()]
          .filter(({ username }) => user.includes(username))
          .map(({ channel_id, username }) => ({ user_id: channel_id, username, nickname: username, channel_id }));
        return { body: { total: users.length, users } };
      }),
    );
    this.on(
      'POST /openplatform/getemotes',
      identified(() => ({ body: { channels: { customizedEmotes: { channel: [] }, globalEmotes: [TROVO_EMOTE] } } })),
    );
    this.on(
      'GET /openplatform/validate',
      guarded((call) => this.validated(call)),
    );
    this.on(
      'GET /openplatform/getuserinfo',
      guarded((call) => this.userInfo(this.ownerOf(call))),
    );
    this.server.on('upgrade', (request, socket, head) => {
      if (request.url !== '/chat') return void socket.destroy();
      this.door.handleUpgrade(request, socket, head, (ws) => this.admit(ws));
    });
  }

  get chat_url(): string {
    return `${this.ws_base_url}/chat`;
  }

  channel(channel_id: string, of: Partial<FakeTrovoChannel> = {}): FakeTrovoChannel {
    const channel = {
      channel_id,
      username: `trovo_${channel_id}`,
      is_live: false,
      title: 'A stream',
      category_id: '10672',
      category_name: 'Genshin Impact',
      viewers: 0,
      followers: 27,
      started_at: '0',
      ...of,
    };
    this.channels.set(channel_id, channel);
    return channel;
  }

  goLive(channel: FakeTrovoChannel, viewers = 7): void {
    Object.assign(channel, { is_live: true, viewers, started_at: String(Math.floor(Date.now() / 1000)) });
  }

  goOffline(channel: FakeTrovoChannel): void {
    Object.assign(channel, { is_live: false, viewers: 0, started_at: '0' });
  }

  /** One item of a channel's chat, with the members that every item has unless it brings them. */
  say(channel_id: string, item: Item): Item {
    const at = Math.floor(Date.now() / 1000);
    const said = { type: 0, send_time: at, message_id: `${Date.now()}_${channel_id}_${randomUUID()}`, ...item };
    const history = this.history.get(channel_id) ?? [];
    this.history.set(channel_id, [...history, said].slice(-HISTORY));
    for (const ws of this.listening(channel_id)) ws.send(chatFrame(channel_id, [said]));
    return said;
  }

  /** Sends items again to whoever listens. */
  again(channel_id: string, items: readonly Item[]): void {
    for (const ws of this.listening(channel_id)) ws.send(chatFrame(channel_id, items));
  }

  listening(channel_id: string): ReadonlySet<WebSocket> {
    return this.sockets_of.get(channel_id) ?? new Set();
  }

  override async close(): Promise<void> {
    for (const ws of this.door.clients) ws.terminate();
    await super.close();
  }

  private admit(ws: WebSocket): void {
    let channel_id: string | null = null;
    ws.on('error', () => undefined);
    ws.on('message', (bytes: Buffer) => {
      const { type, nonce, data } = JSON.parse(bytes.toString()) as {
        type: string;
        nonce?: string;
        data?: { token?: string };
      };
      if (type === 'PING') {
        this.pings += 1;
        if (!this.deaf) ws.send(JSON.stringify({ type: 'PONG', nonce, data: { gap: this.gap } }));
        return;
      }
      const granted = this.chat_tokens.get(data?.token ?? '');
      if (type !== 'AUTH' || granted === undefined || granted.until < Date.now()) {
        ws.send(JSON.stringify({ type: 'RESPONSE', nonce, error: 'invalid token' }));
        return ws.close();
      }
      ({ channel_id } = granted);
      ws.send(JSON.stringify({ type: 'RESPONSE', nonce }));
      ws.send(chatFrame(channel_id, this.history.get(channel_id) ?? []));
      this.sockets_of.set(channel_id, new Set([...this.listening(channel_id), ws]));
    });
    ws.on('close', () => {
      if (channel_id === null) return;
      this.sockets_of.set(channel_id, new Set([...this.listening(channel_id)].filter((one) => one !== ws)));
    });
  }

  private ownerOf = ({ headers }: FakeCall): string => this.tokens.of(headers.authorization)!.owner ?? '';

  private token({ body }: FakeCall, member: 'code' | 'refresh_token'): FakeAnswer {
    const said = String((JSON.parse(body) as Item)[member] ?? '');
    const given = member === 'code' ? this.tokens.exchange(said) : this.tokens.refresh(said);
    if (given === null) return { status: 400, body: { status: 11706, error: 'invalid grant', message: 'invalid' } };
    const { access_token, refresh_token } = given;
    return { body: { access_token, token_type: 'bearer', expires_in: '14400', refresh_token } };
  }

  private chatToken(channel_id: string): FakeAnswer {
    const token = randomUUID();
    this.chat_tokens.set(token, { channel_id, until: Date.now() + CHAT_TOKEN_MS });
    return { body: { token } };
  }

  private validated(call: FakeCall): FakeAnswer {
    const expire_ts = String(Math.floor(Date.now() / 1000) + 14_400);
    return { body: { uid: this.ownerOf(call), client_id: TROVO_CLIENT, scopes: ['chat_connect'], expire_ts } };
  }

  private userInfo(channel_id: string): FakeAnswer {
    const { username = '' } = this.channels.get(channel_id) ?? {};
    return { body: { userId: channel_id, userName: username, nickName: username, channelId: channel_id } };
  }

  private channelInfo({ body }: FakeCall): FakeAnswer {
    const channel = this.channels.get(String((JSON.parse(body) as Item).channel_id ?? ''));
    if (channel === undefined) return { status: 400, body: { status: 20000, error: 'no such channel' } };
    return {
      body: {
        uid: channel.channel_id,
        is_live: channel.is_live,
        category_id: channel.category_id,
        category_name: channel.category_name,
        live_title: channel.title,
        audi_type: 'CHANNEL_AUDIENCE_TYPE_FAMILYFRIENDLY',
        language_code: 'EN',
        thumbnail: '',
        current_viewers: channel.viewers,
        followers: channel.followers,
        streamer_info: '',
        profile_pic: '',
        channel_url: `https://trovo.live/${channel.username}`,
        created_at: '1584341848',
        started_at: channel.started_at,
        ended_at: '0',
        subscriber_num: 1,
        username: channel.username,
        social_links: [],
      },
    };
  }
}

const chatFrame = (channel_id: string, chats: readonly Item[]) =>
  JSON.stringify({ type: 'CHAT', channel_info: { channel_id }, data: { eid: randomUUID(), chats } });

/** Who logs in at `open-api.trovo.live`. */
const LOGINS: LoginAnswer = ({ method, path, headers, token }, people) => {
  const person = people.get(token('OAuth'));
  if (person === undefined || headers['client-id'] === undefined)
    return { status: 401, body: { status: 11704, error: 'ErrAccessTokenInvalid', message: 'invalid access token' } };
  const { client_id, id, name, email = '', avatar_url = '', scopes = ['user_details_self'] } = person;
  if (method === 'GET' && path === '/openplatform/validate') {
    const expire_ts = String(Math.floor(Date.now() / 1000) + 14_400);
    return { status: 200, body: { uid: id, client_id, scopes, expire_ts } };
  }
  if (method === 'GET' && path === '/openplatform/getuserinfo') {
    const user = { userId: id, userName: name.toLowerCase(), nickName: name, email, profilePic: avatar_url };
    return { status: 200, body: { ...user, info: '', channelId: id } };
  }
  return { status: 404, body: { status: 1000, error: '', message: '' } };
};
