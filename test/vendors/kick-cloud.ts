import { generateKeyPairSync, type KeyPairKeyObjectResult, randomBytes, randomUUID, sign } from 'node:crypto';
import { kickSubscription } from '../../demo/vendor-requests';
import type { FakeAnswer, FakeCall } from './cloud';
import { FakeTokens } from './cloud-tokens';
import { FakeVendor, type LoginAnswer } from './fake';

export interface FakeKickChannel {
  broadcaster_user_id: number;
  slug: string;
  is_live: boolean;
  title: string;
  category: { id: number; name: string; thumbnail: string };
  tags: string[];
  viewers: number;
  started_at: string;
  description?: string;
}

interface Subscription {
  id: string;
  event: string;
  version: number;
  broadcaster_user_id: number;
}

export const KICK_CLIENT = 'kick-client';

/** Kick's API, its tokens, and its webhooks: signed with a key pair of its own, one callback for the whole app. */
export class FakeKick extends FakeVendor {
  readonly tokens = new FakeTokens('kick');
  readonly channels = new Map<number, FakeKickChannel>();
  readonly subscriptions = new Map<string, Subscription>();
  /** The app's one setting in Kick's developer page. */
  callback: string | null = null;
  private sequence = 0;

  private pair: KeyPairKeyObjectResult | undefined;

  constructor() {
    super(LOGINS);
    const guarded = (handler: (call: FakeCall) => FakeAnswer) => (call: FakeCall) =>
      this.tokens.of(call.headers.authorization) === null
        ? { status: 401, body: { message: 'Unauthorized', data: {} } }
        : handler(call);
    this.on('POST /oauth/token/introspect', (call) => {
      const grant = this.tokens.of(call.headers.authorization);
      const said = { active: true, client_id: KICK_CLIENT, token_type: 'user', scope: grant?.scopes.join(' ') };
      return data(grant === null ? { active: false } : said);
    });
    this.on('POST /oauth/token', (call) => this.token(new URLSearchParams(call.body)));
    this.on('GET /public/v1/public-key', () => data({ public_key: this.public_key }));
    this.on(
      'GET /public/v1/channels',
      guarded((call) => this.channelList(call)),
    );
    this.on(
      'GET /public/v1/livestreams',
      guarded((call) => this.livestreams(call)),
    );
    this.on(
      'GET /public/v1/users',
      guarded((call) => this.users(call)),
    );
    this.on(
      'GET /public/v1/events/subscriptions',
      guarded((call) => this.subscribed(call)),
    );
    this.on(
      'POST /public/v1/events/subscriptions',
      guarded((call) => this.subscribe(call)),
    );
    this.on(
      'DELETE /public/v1/events/subscriptions',
      guarded((call) => this.unsubscribe(call)),
    );
  }

  get public_key(): string {
    return this.keys.publicKey.export({ type: 'spki', format: 'pem' }).toString();
  }

  /** Made when they are first asked for: that takes a while, and who only logs in needs none. */
  private get keys(): KeyPairKeyObjectResult {
    return (this.pair ??= generateKeyPairSync('rsa', { modulusLength: 2048 }));
  }

  channel(broadcaster_user_id: number, of: Partial<FakeKickChannel> = {}): FakeKickChannel {
    const channel = {
      broadcaster_user_id,
      slug: `channel-${broadcaster_user_id}`,
      is_live: false,
      title: 'A stream',
      category: { id: 15, name: 'Just Chatting', thumbnail: '' },
      tags: ['talk'],
      viewers: 0,
      started_at: '0001-01-01T00:00:00Z',
      ...of,
    };
    this.channels.set(broadcaster_user_id, channel);
    return channel;
  }

  goLive(channel: FakeKickChannel, viewers = 5): void {
    Object.assign(channel, { is_live: true, viewers, started_at: new Date().toISOString().replace(/\.\d+Z$/, 'Z') });
  }

  goOffline(channel: FakeKickChannel): void {
    Object.assign(channel, { is_live: false, viewers: 0, started_at: '0001-01-01T00:00:00Z' });
  }

  /** The headers of a delivery that is signed now. */
  headers(type: string, body: string | Buffer, message_id = this.messageId()): Record<string, string> {
    const timestamp = new Date().toISOString();
    const signed = Buffer.concat([Buffer.from(`${message_id}.${timestamp}.`), Buffer.from(body)]);
    return {
      'content-type': 'application/json',
      'kick-event-message-id': message_id,
      'kick-event-subscription-id': randomUUID(),
      'kick-event-message-timestamp': timestamp,
      'kick-event-type': type,
      'kick-event-version': '1',
      'kick-event-signature': sign('sha256', signed, this.keys.privateKey).toString('base64'),
    };
  }

  /** Posts to the callback until it is answered 2xx, each try freshly signed under one message id, as Kick does. */
  async deliver(type: string, body: string | Buffer, tries = 5): Promise<number> {
    if (this.callback === null) throw new Error('the app has no webhook URL');
    const message_id = this.messageId();
    for (let left = tries; ; left -= 1) {
      const headers = this.headers(type, body, message_id);
      const answer = await fetch(this.callback, { method: 'POST', headers, body: body.toString() }).catch(() => null);
      await answer?.arrayBuffer();
      if (answer?.ok || left <= 1) return answer?.status ?? 0;
      await new Promise((resume) => setTimeout(resume, 200));
    }
  }

  /** A ULID-like id: time first, then chance. */
  private messageId(): string {
    this.sequence += 1;
    const time = Date.now().toString(32).toUpperCase().padStart(10, '0');
    return `${time}${this.sequence.toString(32).toUpperCase().padStart(4, '0')}${randomBytes(6).toString('hex')}`;
  }

  private token(form: URLSearchParams): FakeAnswer {
    const grant_type = form.get('grant_type');
    const given =
      grant_type === 'client_credentials'
        ? this.tokens.give(null)
        : grant_type === 'refresh_token'
          ? this.tokens.refresh(form.get('refresh_token') ?? '')
          : form.has('code_verifier')
            ? this.tokens.exchange(form.get('code') ?? '')
            : null;
    if (given === null) return { status: 401, body: { error: 'invalid_grant' } };
    const { access_token, refresh_token, scopes } = given;
    const token = { access_token, token_type: 'Bearer', expires_in: 7200, scope: scopes.join(' ') };
    return { body: grant_type === 'client_credentials' ? token : { ...token, refresh_token } };
  }

  private named({ query }: FakeCall): FakeKickChannel[] {
    const slugs = query.getAll('slug');
    return [
      ...query.getAll('broadcaster_user_id').flatMap((id) => this.channels.get(Number(id)) ?? []),
      ...[...this.channels.values()].filter(({ slug }) => slugs.includes(slug)),
    ];
  }

  private channelList(call: FakeCall): FakeAnswer {
    if (call.query.getAll('broadcaster_user_id').length > 50)
      return { status: 400, body: { message: 'Invalid request' } };
    return data(
      this.named(call).map((channel) => ({
        banner_picture: '',
        broadcaster_user_id: channel.broadcaster_user_id,
        category: channel.category,
        channel_description: channel.description ?? '',
        slug: channel.slug,
        stream: {
          custom_tags: channel.tags,
          is_live: channel.is_live,
          is_mature: false,
          key: '',
          language: 'en',
          start_time: channel.started_at,
          thumbnail: '',
          url: '',
          viewer_count: channel.viewers,
        },
        stream_title: channel.title,
      })),
    );
  }

  private livestreams(call: FakeCall): FakeAnswer {
    return data(
      this.named(call)
        .filter(({ is_live }) => is_live)
        .map((channel) => ({
          broadcaster_user_id: channel.broadcaster_user_id,
          category: channel.category,
          channel_id: channel.broadcaster_user_id,
          custom_tags: channel.tags,
          has_mature_content: false,
          language: 'en',
          slug: channel.slug,
          started_at: channel.started_at,
          stream_title: channel.title,
          thumbnail: '',
          viewer_count: channel.viewers,
        })),
    );
  }

  private users(call: FakeCall): FakeAnswer {
    const { owner } = this.tokens.of(call.headers.authorization)!;
    const ids = call.query.getAll('id');
    return data(
      (ids.length > 0 ? ids : owner === null ? [] : [owner]).map((id) => ({
        user_id: Number(id),
        name: this.channels.get(Number(id))?.slug ?? `user-${id}`,
        email: null,
        profile_picture: '',
      })),
    );
  }

  private subscribed(call: FakeCall): FakeAnswer {
    const { owner } = this.tokens.of(call.headers.authorization)!;
    const all = [...this.subscriptions.values()];
    return data(owner === null ? all : all.filter((one) => String(one.broadcaster_user_id) === owner));
  }

  private subscribe(call: FakeCall): FakeAnswer {
    const asked = JSON.parse(call.body) as {
      events: { name: string; version: number }[];
      broadcaster_user_id?: number;
    };
    const { owner } = this.tokens.of(call.headers.authorization)!;
    const broadcaster_user_id = asked.broadcaster_user_id ?? Number(owner);
    return data(
      asked.events.map(({ name, version }) => {
        const id = kickSubscription(broadcaster_user_id, name);
        this.subscriptions.set(id, { id, event: name, version, broadcaster_user_id });
        return { name, version, subscription_id: id };
      }),
    );
  }

  private unsubscribe({ query }: FakeCall): FakeAnswer {
    for (const id of query.getAll('id')) this.subscriptions.delete(id);
    return { status: 204 };
  }
}

const data = (value: unknown): FakeAnswer => ({ body: { data: value, message: 'OK' } });

/** Who logs in at `id.kick.com` and `api.kick.com`. */
const LOGINS: LoginAnswer = ({ method, path, token }, people) => {
  const person = people.get(token('Bearer'));
  if (method === 'POST' && path === '/oauth/token/introspect') {
    if (person === undefined) return data({ active: false });
    const { client_id, scopes = ['user:read'] } = person;
    const exp = Math.floor(Date.now() / 1000) + 7200;
    return data({ active: true, client_id, token_type: 'user', scope: scopes.join(' '), exp });
  }
  if (method === 'GET' && path === '/public/v1/users') {
    if (person === undefined) return { status: 401, body: { data: {}, message: 'Unauthorized' } };
    const { id, name, email = '', avatar_url = '' } = person;
    return data([{ user_id: Number(id), name, email, profile_picture: avatar_url }]);
  }
  return { status: 404, body: { message: 'Not Found' } };
};
