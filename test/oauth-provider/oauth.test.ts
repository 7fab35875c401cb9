import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import WebSocket from 'ws';
import type { Act } from '../../app/write-path/act';
import { endSurplusGrants } from '../../access/authentication/tokens/oauth-grants';
import type { ReactionTools } from '../../app/reactor';
import type { Services } from '../../app/services';
import { OPERATIONS } from '../../bin/areas';
import type { StoredEvent } from '../../engines/event-store/port';
import { oauthGrantEnds } from '../../reactors/oauth-provider/oauth-grants';
import { inTime } from '../support/patience';
import { Client as Socket } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';

const CALLBACK = 'https://deck.example/cb';
const SCOPES = ['events:read', 'events:create', 'members:read'];
const ALL_GRANTS = ['authorization_code', 'refresh_token', 'client_credentials', 'password'];

/** An answer of the token endpoint. */
interface Answer {
  status: number;
  body: Record<string, any>;
  headers: Headers;
}
/** A registered client, as the administrator was shown it. */
type Client = Record<string, any>;

describe('OAuth for clients of others', () => {
  let server: TestServer;
  let owner: ApiClient;
  let stranger: ApiClient;
  beforeAll(async () => {
    // Each request may come from an address of its own, so that the limits of one are met only where they are meant.
    server = await startServer({ env: { LUMIO_TRUSTED_PROXIES: '127.0.0.1' } });
    owner = new ApiClient(server.base_url, server.credentials.access_token);
    stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
  });
  afterAll(() => server?.dispose());

  const admin = '/v1/admin/oauth-clients';
  async function register(more: object = {}): Promise<Client> {
    const wanted = {
      ...{ name: 'Deck', client_type: 'confidential', redirect_uris: [CALLBACK], scopes: SCOPES },
      grant_types: ['authorization_code', 'refresh_token'],
    };
    const { status, body } = await owner.send('POST', admin, { ...wanted, ...more });
    expect([status, body.error]).toEqual([201, undefined]);
    return body.data as Client;
  }

  const verifier = () => randomBytes(32).toString('base64url');
  const challengeOf = (secret: string) => createHash('sha256').update(secret).digest('base64url');
  const asked = ({ client_id }: Client, code_verifier: string, more: object = {}) => ({
    ...{ client_id, redirect_uri: CALLBACK, response_type: 'code', scope: 'events:read', state: 'as it was' },
    ...{ code_challenge: challengeOf(code_verifier), code_challenge_method: 'S256' },
    ...more,
  });
  /** The user agrees; answers what the client then sends to the token endpoint. */
  async function agreed(client: Client, more: object = {}, as = owner) {
    const code_verifier = verifier();
    const { status, body } = await as.send('POST', '/v1/auth/authorize', asked(client, code_verifier, more));
    expect([status, body.error]).toEqual([200, undefined]);
    const { code } = body.data as { code: string };
    return { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier, ...naming(client) };
  }
  const naming = ({ client_id, client_secret }: Client) => ({ client_id, ...(client_secret && { client_secret }) });

  let address = 0;
  const fromElsewhere = () => ({ 'x-forwarded-for': `10.0.${(address += 1) >> 8}.${address & 255}` });
  async function token(body: object | string, headers: Record<string, string> = {}): Promise<Answer> {
    const form = typeof body === 'string';
    const type = form ? 'application/x-www-form-urlencoded' : 'application/json';
    const response = await fetch(`${server.base_url}/v1/auth/token`, {
      method: 'POST',
      headers: { 'content-type': type, ...fromElsewhere(), ...headers },
      body: form ? body : JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Answer['body'], headers: response.headers };
  }
  const tokens = async (client: Client, more: object = {}): Promise<Record<string, string>> => {
    const { status, body } = await token(await agreed(client, more));
    expect([status, body.error]).toEqual([200, undefined]);
    return body;
  };
  const refreshed = (client: Client, refresh_token: unknown, more: object = {}) =>
    token({ grant_type: 'refresh_token', refresh_token, ...naming(client), ...more });
  const as = ({ access_token }: Record<string, any>) => new ApiClient(server.base_url, access_token as string);
  const alive = async (given: Record<string, any>) => (await as(given).get('/v1/tokens/me')).status;

  test('are registered, listed, changed and deleted by administrators, over both protocols', async () => {
    const made = await register({ name: 'Listed', grant_types: ALL_GRANTS, account_id: server.credentials.account_id });
    const { client_secret, ...record } = made;
    expect(client_secret).toMatch(/^lm_oauth_[0-9a-f]{64}$/);
    expect(record).toMatchObject({ client_type: 'confidential', enabled: true, grant_types: ALL_GRANTS });
    expect((await owner.get(`${admin}/${made.client_id}`)).body.data).toEqual(record);
    expect((await owner.get(`${admin}?search=listed`)).body).toMatchObject({ data: [record], _meta: { total: 1 } });
    const { data } = await owner.gql(
      `{ oauthClients(search: "${made.client_id}") { total items { clientId clientType redirectUris scopes } } }`,
    );
    expect(data.oauthClients).toEqual({
      total: 1,
      items: [
        { clientId: made.client_id, clientType: 'CONFIDENTIAL', redirectUris: [CALLBACK], scopes: record.scopes },
      ],
    });
    const stored = await server.database!.db.query('select data::text as text from domain_events');
    expect(stored.filter((event) => String(event.text).includes(client_secret as string))).toEqual([]);

    const renamed = await owner.gql(
      'mutation($id: UUID!) { updateOauthClient(clientId: $id, input: { name: "Renamed" }) { name scopes } }',
      { id: made.client_id },
    );
    expect(renamed.data.updateOauthClient).toEqual({ name: 'Renamed', scopes: record.scopes });
    // Nobody waits for the audit log.
    const told = await eventually(async () => {
      const log = await owner.get('/v1/admin/audit-log?action=oauth_client:changed&limit=1');
      return log.body.data.length > 0 ? log : undefined;
    }, 'the change in the audit log');
    expect(told.body.data).toMatchObject([
      {
        actor: { kind: 'jwt', id: server.credentials.user_id },
        target: { kind: 'oauth_client', id: made.client_id },
        before: { name: 'Listed', enabled: true },
        after: { name: 'Renamed', enabled: true },
      },
    ]);
    expect(told.text).not.toContain('_hash');

    const rotated = await owner.send('POST', `${admin}/${made.client_id}/rotate-secret`, {});
    const credentials = { grant_type: 'client_credentials', client_id: made.client_id };
    expect((await token({ ...credentials, client_secret })).status).toBe(401);
    expect((await token({ ...credentials, client_secret: rotated.body.data.client_secret })).status).toBe(200);
    expect((await owner.send('DELETE', `${admin}/${made.client_id}`, undefined)).status).toBe(204);
    expect((await owner.get(`${admin}/${made.client_id}`)).body).toEqual({
      error: 'NOT_FOUND',
      message: 'OAuth client not found',
    });
    expect((await owner.send('DELETE', `${admin}/${made.client_id}`, undefined)).status).toBe(404);
    expect((await owner.send('PATCH', `${admin}/${made.client_id}`, { enabled: true })).status).toBe(404);
  });

  test.each<[string, object, number, string]>([
    ['an unknown scope', { scopes: ['events:fly'] }, 400, 'Invalid permission: events:fly'],
    ['a wildcard', { scopes: ['events:*'] }, 400, 'Invalid permission: events:*'],
    ['a redirect to http', { redirect_uris: ['http://a.example/'] }, 400, 'Invalid redirect URI: http://a.example/'],
    ['a code without redirects', { redirect_uris: [] }, 400, 'authorization_code needs a redirect URI'],
    [
      'a public client that acts by itself',
      { client_type: 'public', grant_types: ['client_credentials'] },
      400,
      'client_credentials needs a confidential client with an account',
    ],
    ['a secret of its own choice', { client_secret: 'x' }, 400, 'client_secret: is not a member of this request'],
    [
      'an account that is not the administrator’s',
      { account_id: '00000000-0000-7000-8000-000000000001' },
      403,
      'This action requires membership of the account',
    ],
  ])('are not registered with %s', async (_what, wrong, status, message) => {
    const wanted = { name: 'x', client_type: 'confidential', redirect_uris: [CALLBACK], scopes: ['events:read'] };
    const answer = await owner.send('POST', admin, { ...wanted, grant_types: ['authorization_code'], ...wrong });
    expect([answer.status, answer.body.message]).toEqual([status, message]);
  });

  test('are the business of administrators alone', async () => {
    const of = (method: string, path: string, body?: object) => stranger.send(method, path, body);
    const id = `${admin}/00000000-0000-7000-8000-000000000001`;
    const refusals = [
      [await of('GET', admin), 'read'],
      [await of('GET', id), 'read'],
      [await of('POST', admin, {}), 'create'],
      [await of('PATCH', id, {}), 'edit'],
      [await of('POST', `${id}/rotate-secret`, {}), 'edit'],
      [await of('DELETE', id), 'delete'],
    ] as const;
    for (const [{ status, body }, action] of refusals) {
      expect([status, body]).toEqual([
        403,
        { error: 'FORBIDDEN', message: `Missing permission: oauth-clients:${action}` },
      ]);
    }
  });

  test.each(['basic', 'post', 'none'] as const)(
    'an independent client library goes through the flow (%s)',
    async (auth) => {
      const client =
        auth === 'none'
          ? await register({ client_type: 'public' })
          : await register({
              grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
              account_id: server.credentials.account_id,
            });
      const told = {
        ...{ base_url: server.base_url, client_id: client.client_id, client_secret: client.client_secret, auth },
        ...{ redirect_uri: CALLBACK, scope: 'events:read members:read', session: server.credentials.access_token },
      };
      const child = spawn(process.execPath, [join(__dirname, '../support/oauth-client.mjs'), JSON.stringify(told)], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
      expect(errors).toBe('');
      const { first, second, own, refusal } = JSON.parse(output) as Record<string, any>;
      expect(first).toMatchObject({ token_type: 'bearer', scope: 'events:read members:read' });
      expect(second.refresh_token).not.toBe(first.refresh_token);
      expect((await as(second).get('/v1/events')).status).toBe(200);
      expect(refusal).toEqual({ error: 'invalid_grant', status: 400 });
      const permissions = own && (await as(own).get('/v1/tokens/me')).body.data.permissions;
      expect(permissions).toEqual(own && SCOPES);
    },
  );

  test('the user is told who asks for what, and their agreement is answered as it was asked', async () => {
    const client = await register();
    const question = new URLSearchParams({
      ...{ client_id: client.client_id as string, redirect_uri: CALLBACK, scope: 'members:read events:read' },
    });
    const implicit = await owner.get(`/v1/auth/authorize?${question}&response_type=token`);
    expect([implicit.status, implicit.body.message]).toEqual([400, expect.stringContaining('response_type: ')]);
    expect((await owner.get(`/v1/auth/authorize?${question}&scope=events:read`)).status).toBe(400);
    expect((await owner.get(`/v1/auth/authorize?${question}`)).body.data).toEqual({
      client_id: client.client_id,
      name: 'Deck',
      account_id: server.credentials.account_id,
      redirect_uri: CALLBACK,
      scopes: ['events:read', 'members:read'],
      granted: ['events:read', 'members:read'],
    });
    const { body } = await owner.send('POST', '/v1/auth/authorize', asked(client, verifier()));
    expect(body.data).toEqual({
      code: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      state: 'as it was',
      redirect_uri: CALLBACK,
    });
    const twin = await owner.gql(
      `mutation($input: AuthorizeOauthClientInput!) { authorizeOauthClient(input: $input) { state redirectUri } }`,
      {
        input: {
          ...{ clientId: client.client_id, redirectUri: CALLBACK, responseType: 'code', scope: 'events:read' },
          ...{ codeChallenge: challengeOf(verifier()), codeChallengeMethod: 'S256' },
        },
      },
    );
    expect(twin.data).toEqual({ authorizeOauthClient: { state: null, redirectUri: CALLBACK } });
  });

  test('an authorization request is taken as OAuth libraries send it, with parameters of other standards', async () => {
    const client = await register();
    const { client_id } = client as Record<string, string>;
    const request = asked(client, verifier()) as Record<string, string>;
    const others = { nonce: 'n', prompt: 'consent', ui_locales: 'de', resource: 'https://deck.example/' };
    const whole = `/v1/auth/authorize?${new URLSearchParams({ ...request, ...others })}`;
    const repeated = '&resource=https://two.example/&prompt=&__proto__=x';
    for (const path of [whole, whole + repeated])
      expect(await owner.get(path)).toMatchObject({ status: 200, body: { data: { client_id } } });
    const unasked = await owner.get(`/v1/auth/authorize?${new URLSearchParams({ ...request, state: '', nonce: '' })}`);
    expect(unasked.status).toBe(200);
    for (const [name, value] of Object.entries(request))
      for (const second of [value, 'other', '']) {
        const { status, body } = await owner.get(`${whole}&${name}=${encodeURIComponent(second)}`);
        expect([name, status, body.message]).toEqual([name, 400, `${name}: is given twice`]);
      }
    const wrong = { code_challenge: 'short', code_challenge_method: 'plain', response_type: 'token' };
    for (const [name, value] of Object.entries(wrong)) {
      const { status, body } = await owner.get(
        `/v1/auth/authorize?${new URLSearchParams({ ...request, [name]: value })}`,
      );
      expect([name, status, body.message]).toEqual([name, 400, expect.stringContaining(name)]);
    }

    const agree = async (members: string, query = '') => {
      const answer = await fetch(`${server.base_url}/v1/auth/authorize${query}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.credentials.access_token}`, 'content-type': 'application/json' },
        body: `{${members}}`,
      });
      return { status: answer.status, body: (await answer.json()) as Answer['body'] };
    };
    const odd = { more: { state: ['x'], a: '"state":' }, 'x\\': '"state":"\\', list: [{ state: 1 }, { state: 2 }] };
    const members = JSON.stringify({ ...odd, ...request, ...others }).slice(1, -1);
    expect(await agree(`${members},"nonce":"m","nonce":"o"`, '?nonce=p')).toMatchObject({
      status: 200,
      body: { data: { state: request.state } },
    });
    for (const twice of [
      await agree(`${members},"state":"other"`),
      await agree(`${members},"st\\u0061te" : "as it was"`),
      await agree(members, '?state=other'),
    ])
      expect(twice).toMatchObject({ status: 400, body: { message: 'state: is given twice' } });
  });

  test.each<[string, object, number, string]>([
    ['a prefix of the redirect', { redirect_uri: 'https://deck.example/c' }, 400, 'redirect_uri is not registered'],
    ['a trailing slash', { redirect_uri: `${CALLBACK}/` }, 400, 'redirect_uri is not registered'],
    ['a query behind it', { redirect_uri: `${CALLBACK}?x=1` }, 400, 'redirect_uri is not registered'],
    ['an encoded character', { redirect_uri: 'https://deck.example/%63b' }, 400, 'redirect_uri is not registered'],
    ['another case', { redirect_uri: 'https://Deck.example/cb' }, 400, 'redirect_uri is not registered'],
    ['a host behind it', { redirect_uri: `${CALLBACK}.evil.example` }, 400, 'redirect_uri is not registered'],
    ['a scope that the client has not', { scope: 'events:read chat:read' }, 400, 'Invalid scope: chat:read'],
    ['a scope of administrators', { scope: 'users:read' }, 400, 'Invalid scope: users:read'],
    ['a wildcard', { scope: 'events:*' }, 400, 'Invalid scope: events:*'],
    ['the plain method', { code_challenge_method: 'plain' }, 400, 'code_challenge_method: '],
    ['no PKCE', { code_challenge: undefined }, 400, 'code_challenge: '],
    ['a short challenge', { code_challenge: 'abc' }, 400, 'code_challenge must be'],
    ['an implicit flow', { response_type: 'token' }, 400, 'response_type: '],
    ['a client that is none', { client_id: '00000000-0000-7000-8000-000000000001' }, 404, 'OAuth client not found'],
  ])('no code is given for %s', async (_what, wrong, status, message) => {
    const client = await register();
    const answer = await owner.send('POST', '/v1/auth/authorize', asked(client, verifier(), wrong));
    expect([answer.status, answer.body.message]).toEqual([status, expect.stringContaining(message)]);
  });

  test('only the user in their session agrees: no key, no client, nobody', async () => {
    const client = await register();
    const body = asked(client, verifier());
    const given = await tokens(client, { scope: 'events:read members:read' });
    const key = new ApiClient(server.base_url, server.credentials.user_api_key);
    const refusal = { error: 'FORBIDDEN', message: 'This action requires a logged-in user' };
    expect((await as(given).send('POST', '/v1/auth/authorize', body)).body).toEqual(refusal);
    expect((await key.send('POST', '/v1/auth/authorize', body)).body).toEqual(refusal);
    expect((await new ApiClient(server.base_url, 'none').send('POST', '/v1/auth/authorize', body)).status).toBe(401);
  });

  test('a client’s token is never the user: no first-party operation, no admin, no other account', async () => {
    const client = await register();
    const given = await tokens(client, { scope: SCOPES.join(' ') });
    const api = as(given);
    expect((await api.get('/v1/tokens/me')).body.data).toEqual({
      permissions: SCOPES,
      admin_permissions: [],
      user_permissions: [],
    });
    expect((await api.get(admin)).body).toMatchObject({ message: 'Missing permission: oauth-clients:read' });
    // What it made would outlive it.
    expect((await api.send('POST', '/v1/api-keys', { label: 'x', permissions: ['events:read'] })).body).toEqual({
      error: 'FORBIDDEN',
      message: 'This action requires a logged-in user',
    });
    const gated = OPERATIONS.filter(({ guard, rest }) => rest && guard.some(({ kind }) => kind === 'first_party'));
    const answers = await Promise.all(
      gated.map(async ({ rest }) => {
        const path = rest!.path.replaceAll(/\{\w+\}/g, '00000000-0000-7000-8000-000000000001');
        const body = rest!.method === 'GET' || rest!.method === 'DELETE' ? undefined : {};
        return [rest!.path, (await api.send(rest!.method, path, body)).body?.message] as const;
      }),
    );
    expect(answers).toEqual(gated.map(({ rest }) => [rest!.path, 'This action requires a logged-in user']));
    const refresh = { refresh_token: given.refresh_token };
    expect((await api.send('POST', '/v1/auth/refresh', refresh)).status).toBe(401);
    expect((await api.send('POST', '/v1/auth/logout', refresh)).status).toBe(401);
    expect(await alive({ access_token: given.refresh_token })).toBe(401);
  });

  test('what it does is told from what the user does, in the account’s audit log', async () => {
    const scopes = ['roles:edit', 'audit-log:read'];
    const client = await register({ scopes });
    const api = as(await tokens(client, { scope: scopes.join(' ') }));
    const role = await api.send('POST', '/v1/roles', { name: 'By a client', permissions: [] });
    expect([role.status, role.body.message]).toEqual([201, undefined]);
    const { user_id } = server.credentials;
    const entries = await eventually(async () => {
      const { data } = (await api.get('/v1/account/audit-log?limit=2')).body;
      return data[0]?.target.id === role.body.data.id ? data : undefined;
    }, 'the role in the audit log');
    expect(entries).toMatchObject([
      { actor: { kind: 'oauth_client', id: user_id }, target: { kind: 'role', id: role.body.data.id } },
      { action: 'oauth_grant:begun', after: { client_id: client.client_id, user_id, scopes } },
    ]);
    const beyond = await api.send('POST', '/v1/roles', { name: 'Beyond', permissions: ['events:read'] });
    expect(beyond.body).toEqual({ error: 'FORBIDDEN', message: 'Missing permission: events:read' });
  });

  test.each<[string, (sent: Record<string, string>, other: Client) => object]>([
    ['another verifier', (sent) => ({ ...sent, code_verifier: verifier() })],
    ['the challenge as the verifier', (sent) => ({ ...sent, code_verifier: challengeOf(sent.code_verifier!) })],
    ['another redirect', (sent) => ({ ...sent, redirect_uri: `${CALLBACK}/` })],
    ['another client', (sent, other) => ({ ...sent, ...naming(other) })],
    ['a code that is none', (sent) => ({ ...sent, code: `${sent.code!.slice(0, -1)}_` })],
  ])('a code is worth nothing with %s, and nothing afterwards', async (_what, wrong) => {
    const client = await register();
    const sent = (await agreed(client)) as unknown as Record<string, string>;
    const attempt = wrong(sent, await register({ name: 'Other' })) as Record<string, string>;
    const answer = await token(attempt);
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_grant']);
    const guessed = attempt.code !== sent.code;
    expect((await token(sent)).status).toBe(guessed ? 200 : 400);
  });

  test('a code is good for a minute', async () => {
    const client = await register();
    const sent = await agreed(client);
    await server.database!.db.query(`update oauth_codes set expires_at = expires_at - interval '61 seconds'`);
    expect((await token(sent)).body.error).toBe('invalid_grant');
  });

  test('a code that comes twice ends what it gave; of two at once one gets it at most', async () => {
    const client = await register();
    const sent = await agreed(client);
    const given = (await token(sent)).body;
    expect(await alive(given)).toBe(200);
    expect((await token(sent)).body.error).toBe('invalid_grant');
    expect(await alive(given)).toBe(401);
    expect((await refreshed(client, given.refresh_token)).body.error).toBe('invalid_grant');
    const told = await server.database!.db.query(
      `select data ->> 'reason' as reason from domain_events where type = 'oauth_grant:ended' and data ->> 'client_id' = $1`,
      [client.client_id],
    );
    expect(told).toEqual([{ reason: 'code_reused' }]);
    const raced = await agreed(client);
    const got = await Promise.all(Array.from({ length: 5 }, () => token(raced)));
    expect(await Promise.all(got.map(({ body }) => alive(body)))).toEqual([401, 401, 401, 401, 401]);
  });

  test('a refresh token is good once; one that comes again ends the grant, a repetition of the call does not', async () => {
    const client = await register();
    const first = await tokens(client, { scope: 'events:read events:create' });
    const key = { 'idempotency-key': 'lost answer', ...fromElsewhere() };
    const ask = { grant_type: 'refresh_token', refresh_token: first.refresh_token, ...naming(client) };
    const [second, again] = [await token(ask, key), await token(ask, key)];
    expect(second.body.refresh_token).toEqual(again.body.refresh_token);
    // Another egress address, and a client that proves itself wrongly.
    const elsewhere = await token(ask, { ...key, ...fromElsewhere() });
    expect(elsewhere.body.refresh_token).toEqual(second.body.refresh_token);
    const { client_secret: _secret, ...unproven } = ask;
    const basic = `Basic ${Buffer.from(`${client.client_id}:wrong`).toString('base64')}`;
    expect((await token(unproven, { ...key, authorization: basic })).body.error).toBe('invalid_client');
    const narrow = await refreshed(client, second.body.refresh_token, { scope: 'events:read' });
    expect(narrow.body.scope).toBe('events:read');
    expect((await as(narrow.body).get('/v1/tokens/me')).body.data.permissions).toEqual(['events:read']);
    const wide = await refreshed(client, narrow.body.refresh_token);
    expect(wide.body.scope).toBe('events:read events:create');
    expect((await refreshed(client, wide.body.refresh_token, { scope: 'members:read' })).body.error).toBe(
      'invalid_scope',
    );
    const other = await register({ name: 'Other' });
    expect((await refreshed(other, wide.body.refresh_token)).body.error).toBe('invalid_grant');
    expect(await alive(wide.body)).toBe(200);

    expect((await refreshed(client, second.body.refresh_token)).body.error).toBe('invalid_grant');
    expect([await alive(wide.body), await alive(narrow.body)]).toEqual([401, 401]);
    expect((await refreshed(client, wide.body.refresh_token)).body.error).toBe('invalid_grant');
  });

  test('a disabled client begins nothing, and what it was given lives on', async () => {
    const client = await register();
    const given = await tokens(client);
    const code = await agreed(client);
    await owner.send('PATCH', `${admin}/${client.client_id}`, { enabled: false });
    expect((await token(code)).body.error).toBe('unauthorized_client');
    expect((await owner.send('POST', '/v1/auth/authorize', asked(client, verifier()))).body).toEqual({
      error: 'CONFLICT',
      message: 'This OAuth client is disabled',
    });
    expect(await alive(given)).toBe(200);
    expect((await refreshed(client, given.refresh_token)).status).toBe(200);
  });

  test('a deleted client’s tokens and sockets end at once', async () => {
    const client = await register();
    const given = await tokens(client);
    const socket = new WebSocket(`${server.ws_url}?token=${given.access_token}`);
    const closed = new Promise<[number, string]>((done) =>
      socket.once('close', (code, reason) => done([code, reason.toString()])),
    );
    await new Promise((open, fail) => socket.once('open', open).once('error', fail));
    expect(await alive(given)).toBe(200);
    expect((await owner.send('DELETE', `${admin}/${client.client_id}`, undefined)).status).toBe(204);
    expect(await alive(given)).toBe(401);
    expect((await refreshed(client, given.refresh_token)).body.error).toBe('invalid_client');
    expect(await closed).toEqual([4401, 'TOKEN_REVOKED']);
  });

  test('a removed member’s grant loses the channels of the account; its socket goes on', async () => {
    const { account_id, other } = server.credentials;
    const viewer = (await owner.get('/v1/roles')).body.data.find(({ slug }: { slug: string }) => slug === 'viewer');
    const invite = await owner.send('POST', `/v1/accounts/${account_id}/invites`, { role_id: viewer.id });
    expect((await stranger.send('POST', `/v1/invites/${invite.body.data.code}/accept`, {})).status).toBe(200);
    const switched = await stranger.send('PATCH', '/v1/users/me', { active_account_id: account_id });
    const guest = new ApiClient(server.base_url, switched.body.data.token);
    const client = await register();
    const given = (await token(await agreed(client, {}, guest))).body;
    const socket = await Socket.open(server.ws_url, String(given.access_token));
    const channel = `events:${account_id}`;
    expect(await socket.subscribe(channel)).toMatchObject({ type: 'subscribed' });
    const removed = await owner.send('DELETE', `/v1/accounts/${account_id}/members/${other.user_id}`, undefined);
    expect(removed.status).toBe(204);
    const end = socket.next(({ type }) => type === 'error', 'the end of the channel');
    expect(await inTime(end, server)).toMatchObject({ code: 'UNAUTHORIZED', channel });
    await socket.ask({ type: 'ping' }, 'pong');
    expect(socket.close_code).toBeNull();
    socket.end();
  });

  test('a grant ends with the session in which the user agreed', async () => {
    const client = await register();
    const { other } = server.credentials;
    const given = (await token(await agreed(client, {}, stranger))).body;
    expect(await alive(given)).toBe(200);
    expect((await stranger.send('POST', '/v1/auth/logout-session', {})).status).toBe(200);
    expect(await alive(given)).toBe(401);
    expect((await refreshed(client, given.refresh_token)).body.error).toBe('invalid_grant');
    expect(other.user_id).not.toBe(server.credentials.user_id);
  });

  test('the grant beyond a hundred ends the oldest, with its event, its sockets and an entry in the audit log', async () => {
    const client = await register();
    const { db } = server.database!;
    const oldest = await tokens(client);
    const socket = new WebSocket(`${server.ws_url}?token=${oldest.access_token}`);
    const closed = new Promise<[number, string]>((done) =>
      socket.once('close', (code, reason) => done([code, reason.toString()])),
    );
    await new Promise((open, fail) => socket.once('open', open).once('error', fail));
    const [{ id } = { id: '' }] = await db.query<{ id: string }>('select id from oauth_grants where client_id = $1', [
      client.client_id,
    ]);
    const copies = (n: number, session: string, of = id) =>
      db.query(
        `insert into oauth_grants (id, client_id, user_id, account_id, session_id, scopes, begun_at, refreshed_at,
                                   expires_at)
         select gen_random_uuid(), client_id, user_id, account_id, ${session}, scopes, begun_at,
                refreshed_at + interval '1 millisecond', expires_at
         from oauth_grants, generate_series(1, $2) where id = $1`,
        [of, n],
      );
    // Grants that ended with their sessions do not count.
    await copies(50, 'gen_random_uuid()');
    await copies(98, 'session_id');
    expect(await alive(await tokens(client))).toBe(200);
    expect(await alive(oldest)).toBe(200);
    expect(await alive(await tokens(client))).toBe(200);
    expect(await alive(oldest)).toBe(401);
    expect(await closed).toEqual([4401, 'TOKEN_REVOKED']);
    const ended = await db.query(
      `select data ->> 'grant_id' as id, data ->> 'reason' as reason from domain_events
       where type = 'oauth_grant:ended' and data ->> 'client_id' = $1`,
      [client.client_id],
    );
    expect(ended).toEqual([{ id, reason: 'limit_exceeded' }]);
    const rows = await db.query('select 1 from oauth_grants where client_id = $1', [client.client_id]);
    expect(rows).toHaveLength(100);
    await eventually(async () => {
      const { data } = (await owner.get(`/v1/account/audit-log?target_id=${id}&limit=1`)).body;
      return data[0]?.action === 'oauth_grant:ended' ? true : undefined;
    }, 'the end in the audit log');

    // A call that dies after the event: the reactor deletes the row.
    const [other] = await db.query<{ id: string }>(
      `select g.id from oauth_grants g join sessions s on s.id = g.session_id where g.client_id = $1 limit 1`,
      [client.client_id],
    );
    await copies(1, 'session_id', other!.id);
    const appended: string[] = [];
    const act: Act = async (_decider, _stream, command) => {
      appended.push((command as { grant_id: string }).grant_id);
      throw new Error('killed');
    };
    const owned = { user_id: server.credentials.user_id, client_id: client.client_id as string };
    const dying = { db, access: { announce: async () => undefined } } as unknown as Services;
    await expect(endSurplusGrants({ act, services: dying }, owned)).rejects.toThrow('killed');
    const row = async () => db.query('select 1 from oauth_grants where id = $1', appended);
    expect(await row()).toHaveLength(1);
    const kept: Promise<unknown>[] = [];
    const keep = (text: string, values: readonly unknown[]) => void kept.push(db.query(text, values));
    const event = { type: 'oauth_grant:ended', data: { grant_id: appended[0] } } as unknown as StoredEvent;
    await oauthGrantEnds.react(event, { keep } as ReactionTools);
    await Promise.all(kept);
    expect(await row()).toEqual([]);
    expect(await db.query('select 1 from revocations where credential_id = $1', appended)).toHaveLength(1);
  });

  test('a token holds what the user holds now, and what the client is registered for now', async () => {
    const client = await register();
    const given = await tokens(client, { scope: SCOPES.join(' ') });
    const held = async () => (await as(given).get('/v1/tokens/me')).body.data.permissions as string[];
    const { db } = server.database!;
    const { account_id, user_id } = server.credentials;
    const become = (slug: string) =>
      db.query(
        `update account_members m set role_id = r.id from account_roles r
         where m.account_id = $1 and m.user_id = $2 and r.account_id = $1 and r.slug = $3`,
        [account_id, user_id, slug],
      );
    const until = (wanted: readonly string[]) =>
      eventually(async () => ((await held()).join() === wanted.join() ? true : undefined), wanted.join());
    expect(await held()).toEqual(SCOPES);
    await become('viewer');
    await until(['events:read']);
    await become('owner');
    await until(SCOPES);
    await owner.send('PATCH', `${admin}/${client.client_id}`, { scopes: ['events:create'] });
    await until(['events:create']);
  });

  test('a scope taken from a client counts at the next request, and ends its channels on open sockets', async () => {
    const { account_id } = server.credentials;
    const client = await register({ grant_types: ALL_GRANTS, account_id });
    const asking = { grant_type: 'client_credentials', ...naming(client) };
    const given = [await tokens(client, { scope: SCOPES.join(' ') }), (await token(asking)).body];
    const channel = `events:${account_id}`;
    const sockets = await Promise.all(given.map(({ access_token }) => Socket.open(server.ws_url, access_token!)));
    for (const socket of sockets) expect(await socket.subscribe(channel)).toMatchObject({ type: 'subscribed' });
    for (const one of given) expect((await as(one).get('/v1/events')).status).toBe(200);

    const changed = await owner.send('PATCH', `${admin}/${client.client_id}`, { scopes: ['members:read'] });
    expect(changed.status).toBe(200);
    for (const one of given) expect((await as(one).get('/v1/events')).status).toBe(403);
    const ends = sockets.map((socket) => socket.next(({ type }) => type === 'error', 'the end of the channel'));
    expect(await inTime(Promise.all(ends), server)).toMatchObject(
      sockets.map(() => ({ code: 'UNAUTHORIZED', channel })),
    );
    // Token and socket go on with what is left.
    for (const one of given)
      expect((await as(one).get('/v1/tokens/me')).body.data.permissions).toEqual(['members:read']);
    for (const socket of sockets) await socket.ask({ type: 'ping' }, 'pong');
    sockets.forEach((socket) => socket.end());
  });

  test('the token endpoint answers as RFC 6749 says, in forms and in JSON', async () => {
    const client = await register();
    const form = (members: Record<string, string>) => new URLSearchParams(members).toString();
    const basic = (id: string, secret: string) => ({
      authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
    });
    const { client_id, client_secret } = client as Record<string, string>;
    const { client_id: _id, client_secret: _secret, ...sent } = (await agreed(client)) as Record<string, string>;
    const unknown = '&unknown=parameter&unknown=again&__proto__=x';
    const given = await token(form({ ...sent, scope: '' }) + unknown, basic(client_id!, client_secret!));
    expect(given.status).toBe(200);
    expect(given.headers.get('cache-control')).toBe('no-store');
    expect(Object.keys(given.body).sort()).toEqual([
      'access_token',
      'expires_in',
      'refresh_token',
      'scope',
      'token_type',
    ]);

    const refresh = { grant_type: 'refresh_token', refresh_token: String(given.body.refresh_token) };
    const cases: [string, Answer][] = [
      ['invalid_client', await token(form(refresh), basic(client_id!, 'wrong'))],
      ['invalid_client', await token({ ...refresh, client_id })],
      ['invalid_client', await token({ ...refresh, client_id: 'no-uuid', client_secret })],
      ['invalid_client', await token(refresh)],
      ['invalid_request', await token({ ...refresh, client_id, client_secret }, basic(client_id!, client_secret!))],
      ['invalid_request', await token(`${form(refresh)}&grant_type=refresh_token`)],
      ['invalid_request', await token(`${form(refresh)}&scope=&scope=`)],
      ['invalid_request', await token('grant_type=%ff')],
      ['invalid_request', await token({})],
      ['invalid_request', await token({ grant_type: 'refresh_token', client_id, client_secret })],
      ['unsupported_grant_type', await token({ grant_type: 'password', username: 'a', password: 'b' })],
      ['unsupported_grant_type', await token(form({ grant_type: 'password', client_id: client_id! }))],
      ['unauthorized_client', await token({ grant_type: 'client_credentials', client_id, client_secret })],
    ];
    const said = cases.map(([, { status, body }]) => [status, body.error]);
    expect(said).toEqual(cases.map(([error]) => [error === 'invalid_client' ? 401 : 400, error]));
    for (const [, { body }] of cases) expect(body.error_description).toBe(body.message);
    expect(cases[0]![1].headers.get('www-authenticate')).toMatch(/^Basic /);
    const { body: twice } = await token(`{"grant_type":"password","grant_type":"refresh_token"}`, {
      'content-type': 'application/json',
    });
    expect(twice).toEqual({ error: 'VALIDATION_ERROR', message: 'grant_type: is given twice' });
    // Secrets in a URL count for nothing: proxies write it down.
    const inUrl = await fetch(
      `${server.base_url}/v1/auth/token?${form({ ...refresh, client_id: client_id!, client_secret: client_secret! })}`,
      {
        method: 'POST',
        headers: fromElsewhere(),
      },
    );
    expect([inUrl.status, ((await inUrl.json()) as Answer['body']).error]).toEqual([400, 'invalid_request']);
    const twin = await owner.gql(
      'mutation($input: IssueOauthTokenInput!) { issueOauthToken(input: $input) { tokenType scope } }',
      {
        input: {
          grantType: 'refresh_token',
          refreshToken: given.body.refresh_token,
          clientId: client_id,
          clientSecret: client_secret,
        },
      },
    );
    expect(twin.data.issueOauthToken).toEqual({ tokenType: 'Bearer', scope: 'events:read' });
    const refused = await owner.gql('mutation { issueOauthToken(input: { grantType: "password" }) { scope } }');
    expect(refused.errors[0]).toMatchObject({
      message: 'This grant type is not supported',
      extensions: { code: 'unsupported_grant_type' },
    });
  });

  test('a client that acts by itself acts on its account, as nobody, within its scopes', async () => {
    const { account_id } = server.credentials;
    const client = await register({ grant_types: ['client_credentials'], account_id });
    const ask = { grant_type: 'client_credentials', ...naming(client) };
    const given = await token({ ...ask, scope: 'events:read' });
    expect([given.status, given.body.refresh_token]).toEqual([200, undefined]);
    const api = as(given.body);
    expect((await api.get('/v1/tokens/me')).body.data.permissions).toEqual(['events:read']);
    expect((await api.get('/v1/events')).status).toBe(200);
    expect((await api.send('POST', '/v1/auth/ws-token', {})).body.message).toBe(
      'This action requires a logged-in user',
    );
    expect((await token({ ...ask, scope: 'events:read chat:read' })).body.error).toBe('invalid_scope');
    // It is a key to the account: its scopes and its secret are for who holds them there.
    const elsewhere = await register({ grant_types: ['client_credentials'], account_id, scopes: ['account:delete'] });
    await owner.send('DELETE', `${admin}/${elsewhere.client_id}`, undefined);
    await owner.send('DELETE', `${admin}/${client.client_id}`, undefined);
    expect(await alive(given.body)).toBe(401);
  });

  test('guessing secrets is counted against the network, however it is sent', async () => {
    const { client_id } = await register();
    const at = { 'x-forwarded-for': '192.0.2.7' };
    const guess = (n: number) => {
      const secret = `lm_oauth_${String(n).padStart(64, '0')}`;
      const basic = `Basic ${Buffer.from(`${client_id}:${secret}`).toString('base64')}`;
      return n % 2 === 0
        ? token({ grant_type: 'client_credentials', client_id, client_secret: secret }, at)
        : token('grant_type=client_credentials', { ...at, authorization: basic });
    };
    const statuses: number[] = [];
    for (let n = 0; n < 250; n += 25) {
      const some = await Promise.all(Array.from({ length: 25 }, (_, k) => guess(n + k)));
      statuses.push(...some.map(({ status }) => status));
    }
    expect(statuses.filter((status) => status === 401)).toHaveLength(120);
    expect(statuses.filter((status) => status === 429)).toHaveLength(130);
  });

  test('a right client uses up its own calls, and not those of its network', async () => {
    const { account_id } = server.credentials;
    const client = await register({ grant_types: ['client_credentials'], account_id });
    const { client_id, client_secret } = client as Record<string, string>;
    const at = { 'x-forwarded-for': '192.0.2.8' };
    const basic = `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`;
    const statuses = new Map<number, number>();
    for (let n = 0; n < 150; n += 25) {
      const right = () => token('grant_type=client_credentials', { ...at, authorization: basic });
      for (const { status } of await Promise.all(Array.from({ length: 25 }, right)))
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    expect([...statuses]).toEqual([[200, 150]]);
    // Of the network's own 120 none is gone.
    const anonymous = await fetch(`${server.base_url}/v1/.well-known/jwks.json`, { headers: at });
    expect(anonymous.headers.get('ratelimit-remaining')).toBe('119');
    await owner.send('DELETE', `${admin}/${client_id}`, undefined);
  });

  test('a right client is served at an address that has no calls left, and nobody else is', async () => {
    const { account_id } = server.credentials;
    const client = await register({ grant_types: ['client_credentials'], account_id });
    const open = await register({ client_type: 'public' });
    const { client_id, client_secret } = client as Record<string, string>;
    const at = { 'x-forwarded-for': '192.0.2.9' };
    const basic = (secret: string) => `Basic ${Buffer.from(`${client_id}:${secret}`).toString('base64')}`;
    const by = (secret: string) => token('grant_type=client_credentials', { ...at, authorization: basic(secret) });
    const wrong = `lm_oauth_${'0'.repeat(64)}`;
    const guesses = (count: number) => Promise.all(Array.from({ length: count }, () => by(wrong)));
    await Promise.all([0, 1, 2, 3].map(() => guesses(30)));
    // Past the calls of the network, guesses are answered alike, whatever else is wrong with them.
    const refusals = [
      ...(await guesses(130)),
      await token({ grant_type: 'client_credentials', client_id, client_secret: wrong }, at),
      await token({ grant_type: 'client_credentials' }, at),
      await token('grant_type=password', { ...at, authorization: basic(client_secret!) }),
      await token(await agreed(open), at),
      await token('grant_type=%ff', { ...at, authorization: basic(client_secret!) }),
      await token(`grant_type=client_credentials&more=${'x'.repeat(20_000)}`, {
        ...at,
        authorization: basic(client_secret!),
      }),
    ];
    for (const { status, body, headers } of refusals) {
      expect([status, body.error]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    const right = [
      await by(client_secret!),
      await token({ grant_type: 'client_credentials', client_id, client_secret }, at),
    ];
    expect(right.map(({ status }) => status)).toEqual([200, 200]);
    const counted = right.map(({ headers }) => [headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]);
    expect(counted).toEqual([
      ['600', '599'],
      ['600', '598'],
    ]);
    const anonymous = await fetch(`${server.base_url}/v1/.well-known/jwks.json`, { headers: at });
    expect(anonymous.status).toBe(429);
    for (const one of [client, open]) await owner.send('DELETE', `${admin}/${one.client_id}`, undefined);
  });
});
