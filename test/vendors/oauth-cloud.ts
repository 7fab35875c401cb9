import { createHash, randomUUID } from 'node:crypto';
import { type FakeAnswer, type FakeCall, FakeCloud, type FakeHandler } from './cloud';
import { type FakeGrant, FakeTokens } from './cloud-tokens';
import { FakeDiscordRest } from './discord-rest';

/** The app that is registered everywhere. */
export const APP = { client_id: 'lumio-app', client_secret: 'app-secret' };

interface Asked {
  client_id: string;
  redirect_uri: string;
  challenge: string;
  scopes: string[];
}

const json = (status: number, body: unknown): FakeAnswer => ({ status, body });
const REFUSED = json(400, { error: 'invalid_grant', message: 'Invalid refresh token', status: 400 });

/**
 * The logins of all vendors on one address, since their paths differ: what an authorize page was asked is held against
 * what the code is redeemed with, and a refresh makes the tokens before useless.
 */
export class FakeOAuthCloud extends FakeCloud {
  readonly tokens = new FakeTokens('oauth');
  readonly discord = new FakeDiscordRest();
  /** Apps by id, with their secrets. */
  readonly apps = new Map([[APP.client_id, APP.client_secret]]);
  /** What was revoked. */
  readonly revoked: string[] = [];
  /** Kick's subscriptions: events by channel. */
  readonly subscriptions = new Map<string, { id: string; event: string; owner: string }>();
  /** How long access tokens live, in seconds. */
  lifetime = 14_400;
  private readonly asked_for = new Map<string, Asked>();

  constructor() {
    super();
    const form = ({ body }: FakeCall) => Object.fromEntries(new URLSearchParams(body));
    for (const path of ['/oauth2/token', '/token', '/oauth/token', '/api/v10/oauth2/token'])
      this.on(`POST ${path}`, (call) => this.token(form(call)));
    this.on('POST /api/token', (call) => this.token({ ...form(call), ...basicOf(call) }));
    for (const path of ['exchangetoken', 'refreshtoken'])
      this.on(`POST /openplatform/${path}`, (call) =>
        this.token({ ...JSON.parse(call.body), client_id: String(call.headers['client-id']), trovo: '1' }),
      );
    for (const path of ['/oauth2/revoke', '/revoke', '/oauth/revoke', '/api/v10/oauth2/token/revoke'])
      this.on(`POST ${path}`, (call) => this.revoke(form(call)['token']!));
    this.on('POST /openplatform/revoke', (call) => this.revoke(JSON.parse(call.body).access_token));

    const about = (of: (grant: FakeGrant & { owner: string }) => unknown) => (call: FakeCall) => {
      const grant = this.tokens.of(call.headers.authorization);
      return grant?.owner ? json(200, of(grant as FakeGrant & { owner: string })) : json(401, { message: 'no' });
    };
    const of_app = { client_id: APP.client_id };
    this.on('GET /oauth2/validate', (call) => {
      const grant = this.tokens.of(call.headers.authorization);
      if (!grant?.owner) return json(401, { status: 401, message: 'invalid access token' });
      const [client_id] = [...this.apps.keys()].slice(-1);
      return json(200, { client_id, user_id: grant.owner, login: `l${grant.owner}`, scopes: [], expires_in: 9 });
    });
    this.on(
      'GET /helix/users',
      about(({ owner: id }) => ({
        data: [{ id, login: `login_${id}`, display_name: `Name ${id}`, profile_image_url: '' }],
      })),
    );
    this.on(
      'GET /youtube/v3/channels',
      about(({ owner: id }) => ({ items: [{ id, snippet: { title: `Name ${id}` } }] })),
    );
    this.on(
      'POST /oauth/token/introspect',
      about(() => ({ data: { active: true, client_id: [...this.apps.keys()].at(-1), scope: 'user:read' } })),
    );
    this.on(
      'GET /public/v1/users',
      about(({ owner }) => ({ data: [{ user_id: Number(owner), name: `Name ${owner}` }] })),
    );
    this.on(
      'GET /openplatform/validate',
      about(({ owner: uid }) => ({ uid, ...of_app, scopes: [] })),
    );
    this.on(
      'GET /openplatform/getuserinfo',
      about(({ owner: userId }) => ({ userId, nickName: `Name ${userId}` })),
    );
    this.on(
      'GET /v1/me',
      about(({ owner: id }) => ({ id, display_name: `Name ${id}`, images: [] })),
    );
    const path = '/public/v1/events/subscriptions';
    this.on(
      `GET ${path}`,
      about(({ owner }) => ({ data: [...this.subscriptions.values()].filter((one) => one.owner === owner) })),
    );
    this.on(`POST ${path}`, (call) => this.subscribe(call));
    this.on(`DELETE ${path}`, (call) => {
      for (const id of call.query.getAll('id')) this.subscriptions.delete(id);
      return { status: 204 };
    });
  }

  /** What the settings say of all vendors. */
  protected override handlerOf(asked: FakeCall): FakeHandler {
    const answer = this.discord.answer(asked, true);
    return answer === undefined ? super.handlerOf(asked) : () => answer;
  }

  env(): Record<string, string> {
    const url = this.base_url;
    const names = ['TWITCH', 'GOOGLE', 'KICK', 'TROVO', 'DISCORD', 'SPOTIFY'];
    return Object.fromEntries([
      ['LUMIO_OUTGOING__ALLOW_LOOPBACK', 'true'],
      ['LUMIO_GOOGLE__TOKEN_URL', url],
      ...['SEVENTV', 'BTTV', 'FFZ', 'YOUTUBE'].map((name) => [`LUMIO_EMOTES__${name}_URL`, url]),
      ...names.flatMap((name) => [
        [`LUMIO_${name}__CLIENT_ID`, APP.client_id],
        [`LUMIO_${name}__CLIENT_SECRET`, APP.client_secret],
        [`LUMIO_${name}__API_URL`, url],
        ...(name === 'DISCORD' ? [] : [[`LUMIO_${name}__ID_URL`, url]]),
      ]),
    ]);
  }

  /** Somebody logs in at the vendor's page: what their browser brings back. */
  login(authorize_url: string, owner: string): { code: string; state: string; redirect_uri: string } {
    const query = new URL(authorize_url).searchParams;
    const of = (name: string) => query.get(name) ?? '';
    if (!this.apps.has(of('client_id')) || of('response_type') !== 'code' || of('code_challenge_method') !== 'S256')
      throw new Error(`a login that no vendor takes: ${authorize_url}`);
    const scopes = of('scope').split(' ');
    const code = this.tokens.code(owner, scopes);
    const redirect_uri = of('redirect_uri');
    this.asked_for.set(code, {
      ...{ client_id: of('client_id'), redirect_uri, scopes },
      challenge: of('code_challenge'),
    });
    return { code, state: of('state'), redirect_uri };
  }

  protected token(given: Record<string, string>): FakeAnswer {
    if (this.apps.get(given['client_id']!) !== given['client_secret'])
      return json(403, { status: 403, message: 'invalid client secret' });
    if (given['grant_type'] === 'client_credentials') return this.shown(this.tokens.give(null), given);
    if (given['grant_type'] === 'refresh_token') return this.shown(this.tokens.refresh(given['refresh_token']!), given);
    const asked = this.asked_for.get(given['code']!);
    const right =
      asked?.client_id === given['client_id'] &&
      asked?.redirect_uri === given['redirect_uri'] &&
      (given['trovo'] !== undefined || asked?.challenge === s256(given['code_verifier'] ?? ''));
    return right ? this.shown(this.tokens.exchange(given['code']!), given) : REFUSED;
  }

  private shown(grant: FakeGrant | null, { trovo }: Record<string, string>): FakeAnswer {
    if (grant === null) return REFUSED;
    const { access_token, refresh_token, owner, scopes } = grant;
    const expires_in = trovo === undefined ? this.lifetime : String(this.lifetime);
    const guild = scopes.includes('bot') && { guild: { id: owner, name: `Name ${owner}`, icon: null } };
    return json(200, { access_token, refresh_token, expires_in, scope: scopes.join(' '), ...guild });
  }

  private revoke(token: string): FakeAnswer {
    this.revoked.push(token);
    return { status: 200 };
  }

  private subscribe(call: FakeCall): FakeAnswer {
    const owner = this.tokens.of(call.headers.authorization)?.owner;
    if (!owner) return json(401, { message: 'Unauthorized' });
    const { events } = JSON.parse(call.body) as { events: { name: string; version: number }[] };
    const data = events.map(({ name, version }) => {
      const id = randomUUID();
      this.subscriptions.set(id, { id, event: name, owner });
      return { name, version, subscription_id: id };
    });
    return json(200, { data, message: 'OK' });
  }
}

const s256 = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url');

function basicOf({ headers }: FakeCall): Record<string, string> {
  const [client_id = '', client_secret = ''] = Buffer.from((headers.authorization ?? '').slice(6), 'base64')
    .toString()
    .split(':');
  return { client_id, client_secret };
}
