import { randomUUID } from 'node:crypto';
import type { FakeAnswer, FakeCall } from './cloud';
import { APP, FakeOAuthCloud } from './oauth-cloud';

/** A message that somebody sent to a chat, or an act of a moderator, as the platform got it. */
export interface ChatCall {
  /** The vendor's id of the token's owner; null for the app. */
  owner: string | null;
  body: Record<string, any>;
  query: Record<string, string>;
}

const REFUSED: FakeAnswer = { status: 401, body: { status: 401, message: 'Invalid OAuth token' } };

/** The chats of four platforms and their logins, on one address. Source: vendors.md §2 to §5. */
export class FakeChatCloud extends FakeOAuthCloud {
  readonly sent: ChatCall[] = [];
  readonly acts: (ChatCall & { route: string })[] = [];
  /** Twitch answers that it dropped the message. */
  drop_reason: string | null = null;
  /** Twitch takes the secret of the app. */
  knows_app = false;

  constructor() {
    super();
    this.on('GET /oauth2/validate', (call) => {
      const grant = this.tokens.of(call.headers.authorization);
      if (!grant?.owner) return REFUSED;
      const { owner: user_id, scopes } = grant;
      return { body: { client_id: APP.client_id, user_id, login: `l${user_id}`, scopes, expires_in: 3_600 } };
    });
    this.on('GET /oauth2/v3/tokeninfo', (call) => {
      const grant = this.tokens.of(`Bearer ${call.query.get('access_token')}`);
      return grant?.owner ? { body: { aud: APP.client_id, sub: grant.owner, scope: grant.scopes.join(' ') } } : REFUSED;
    });
    this.on('GET /public/v1/users', (call) => {
      const owner = this.tokens.of(call.headers.authorization)?.owner;
      if (!owner) return REFUSED;
      const id = call.query.get('id') ?? owner;
      const profile_picture = `https://pictures.example/${id}.png`;
      return { body: { data: [{ user_id: Number(id), name: `Name ${id}`, profile_picture }] } };
    });
    this.on('GET /public/v1/channels', (call) => {
      const id = call.query.get('broadcaster_user_id')!;
      return { body: { data: [{ broadcaster_user_id: Number(id), channel_description: `Streams of ${id}` }] } };
    });
    this.on('GET /helix/chat/emotes/user', (call) => {
      if (this.tokens.of(call.headers.authorization)?.owner !== call.query.get('user_id')) return REFUSED;
      const second = call.query.has('after');
      const emote = second ? { id: 'e2', name: 'name_e2', format: ['animated'] } : { id: 'e1', name: 'name_e1' };
      return { body: { data: [emote], pagination: second ? {} : { cursor: 'c' } } };
    });
    this.on('POST /helix/chat/messages', (call) =>
      this.taken(call, (said) => {
        const is_sent = this.drop_reason === null;
        if (is_sent) this.sent.push(said);
        const drop_reason = is_sent ? null : { code: 'msg_rejected', message: this.drop_reason };
        return { body: { data: [{ message_id: is_sent ? randomUUID() : '', is_sent, drop_reason }] } };
      }),
    );
    this.on('POST /youtube/v3/liveChat/messages', (call) =>
      this.taken(call, (said) => this.said(said, { id: 'yt-1' })),
    );
    this.on('POST /public/v1/chat', (call) =>
      this.taken(call, (said) => this.said(said, { data: { is_sent: true, message_id: randomUUID() }, message: 'OK' })),
    );
    this.on('POST /openplatform/chat/send', (call) => this.taken(call, (said) => this.said(said, {})));
    this.tools();
    for (const route of [
      'POST /helix/moderation/bans',
      'DELETE /helix/moderation/bans',
      'DELETE /helix/moderation/chat',
      'POST /helix/chat/announcements',
      'POST /helix/chat/shoutouts',
      'POST /youtube/v3/liveChat/bans',
      'DELETE /youtube/v3/liveChat/bans',
      'DELETE /youtube/v3/liveChat/messages',
      'DELETE /public/v1/chat/*',
      'POST /openplatform/channels/command',
    ])
      this.on(route, (call) =>
        this.taken(call, (said) => {
          this.acts.push({ ...said, route: `${call.method} ${call.path}` });
          return route.startsWith('POST') ? { body: { id: 'ban-1', data: [{}] } } : { status: 204 };
        }),
      );
  }

  protected override token(given: Record<string, string>): FakeAnswer {
    if (given['grant_type'] !== 'client_credentials') return super.token(given);
    if (!this.knows_app) return { status: 403, body: { status: 403, message: 'invalid client secret' } };
    return { body: { access_token: this.tokens.give(null).access_token, expires_in: 3_600, token_type: 'bearer' } };
  }

  /** A channel of Trovo with its followers, newest first. */
  trovoChannel(id: string, followers: readonly string[]): void {
    this.on(`POST /openplatform/channels/${id}/followers`, ({ body }) => {
      const { limit, cursor } = JSON.parse(body) as { limit: number; cursor: number };
      const page = followers.slice(cursor * limit, (cursor + 1) * limit);
      const follower = page.map((user_id) => ({ user_id, nickname: `n${user_id}`, followed_at: '1768501800' }));
      return { body: { total: String(followers.length), follower, total_page: 9, cursor } };
    });
  }

  /** Raids, polls, predictions and suspicious users of Twitch. */
  private tools(): void {
    const routes = ['POST /helix/raids', 'DELETE /helix/raids', 'PATCH /helix/polls', 'PATCH /helix/predictions'];
    const suspicious = 'helix/moderation/suspicious_users';
    for (const route of [...routes, `POST /${suspicious}`, `DELETE /${suspicious}`])
      this.on(route, (call) => this.acted(call, {}));
    for (const path of ['polls', 'predictions'])
      this.on(`POST /helix/${path}`, (call) => this.acted(call, { id: `${path}-${randomUUID()}` }));
  }

  private acted(call: FakeCall, made: object): FakeAnswer {
    return this.taken(call, (said) => {
      this.acts.push({ ...said, route: `${call.method} ${call.path}` });
      return call.method === 'DELETE' ? { status: 204 } : { body: { data: [made] } };
    });
  }

  private taken(call: FakeCall, answer: (said: ChatCall) => FakeAnswer): FakeAnswer {
    const grant = this.tokens.of(call.headers.authorization);
    if (grant === null) return REFUSED;
    const body = call.body === '' ? {} : (JSON.parse(call.body) as Record<string, any>);
    return answer({ owner: grant.owner, body, query: Object.fromEntries(call.query) });
  }

  private said(said: ChatCall, body: object): FakeAnswer {
    this.sent.push(said);
    return { body };
  }
}
