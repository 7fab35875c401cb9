import WebSocket from 'ws';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { popoutCookie, popoutSessionIn } from '../../access/authentication/tokens/popout-cookie';
import { popoutToken, type PopoutTokenEvent } from '../../domain/credentials/popout-tokens';
import { popoutTokens } from '../../projections/credentials/popout-tokens';
import { testDatabase, type TestDatabase } from '../support/database';
import { decider } from '../support/decider';
import { feed, uuid } from '../support/identity';
import { inTime, probeOf, promised } from '../support/patience';
import { runLumio } from '../support/server';
import { ownerAndStranger, sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';
import { uploadedSound } from '../support/uploaded-sound';
import { eventually, type ApiClient } from '../support/vendor-cloud';

const now = '2026-01-02T03:04:05.000Z';
const PAST = '2026-01-01T00:00:00.000Z';
const [token_id, account_id, user_id] = [uuid(1), uuid(2), uuid(3)];
const facts = {
  token_id,
  account_id,
  user_id,
  created_by: user_id,
  token_hash: 'a'.repeat(64),
  token_prefix: 'lm_pop_ab',
  label: 'Chat',
  permissions: ['chat:read'],
  expires_at: null,
};
const created: PopoutTokenEvent = { type: 'popout_token:created', ...facts, created_at: now };
const updated = (change: { label?: string | null; expires_at?: string | null }): PopoutTokenEvent => ({
  type: 'popout_token:updated',
  token_id,
  account_id,
  label: facts.label,
  expires_at: null,
  updated_at: now,
  ...change,
});
const revoked: PopoutTokenEvent = { type: 'popout_token:revoked', token_id, account_id, revoked_at: now };

describe('a popout token', () => {
  const given = decider(popoutToken);
  test('is created once, and does not begin expired', () => {
    const create = { type: 'popout_token:create', ...facts, now } as const;
    given([]).when(create).then(created);
    given([created]).when(create).thenFails('KEY_EXISTS');
    given([])
      .when({ ...create, expires_at: PAST })
      .thenFails('EXPIRY_IN_THE_PAST');
  });
  test('changes what is named, may end in the past, and come back', () => {
    const update = { type: 'popout_token:update', now } as const;
    given([created])
      .when({ ...update, label: null })
      .then(updated({ label: null }));
    given([created])
      .when({ ...update, expires_at: PAST })
      .then(updated({ expires_at: PAST }));
    given([created, updated({ expires_at: PAST })])
      .when({ ...update, expires_at: null })
      .then(updated({}));
    given([created]).when(update).thenNothing();
    given([created])
      .when({ ...update, label: 'Chat', expires_at: null })
      .thenNothing();
    given([]).when(update).thenFails('TOKEN_NOT_FOUND');
    given([created, revoked])
      .when({ ...update, expires_at: null })
      .thenFails('TOKEN_REVOKED');
  });
  test('is revoked once', () => {
    given([created]).when({ type: 'popout_token:revoke', now }).then(revoked);
    given([created, revoked]).when({ type: 'popout_token:revoke', now }).thenNothing();
    given([]).when({ type: 'popout_token:revoke', now }).thenFails('TOKEN_NOT_FOUND');
  });
});

test('the read model keeps revoked tokens with their time; a page may come twice', async () => {
  const t: TestDatabase = await testDatabase();
  const other = { ...created, token_id: uuid(4), token_hash: 'b'.repeat(64) };
  await feed(t.db, popoutTokens, [created, other, updated({ label: 'x', expires_at: PAST }), revoked], 2);
  expect(await t.db.query('select id, label, expires_at, revoked_at from popout_tokens order by id')).toEqual([
    { id: token_id, label: 'x', expires_at: PAST, revoked_at: now },
    { id: uuid(4), label: 'Chat', expires_at: null, revoked_at: null },
  ]);
  expect(await t.db.query('select distinct credential_id, account_id from revocations order by 1')).toEqual([
    { credential_id: token_id, account_id: null },
    { credential_id: null, account_id },
  ]);
  await t.drop();
});

test('the cookie is for this site alone, never for scripts, and over TLS outside development', () => {
  const made = popoutCookie('lm_eyJ.a.b', { max_age_s: 900, secure: true });
  expect(made).toBe('lumio-popout-token=lm_eyJ.a.b; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=900');
  expect(popoutSessionIn('a=1;  lumio-popout-token=lm_eyJ.a.b ; b=2')).toBe('lm_eyJ.a.b');
  for (const none of [undefined, '', ';', 'lumio-popout-token', 'lumio-popout-token=', 'xlumio-popout-token=x', '=x'])
    expect(popoutSessionIn(none)).toBeUndefined();
});

describe('over HTTP', () => {
  let server: SharedServer;
  let account: MadeAccount;
  let user_api_key: string;
  let owner: ApiClient;
  let stranger: ApiClient;
  const as = (token: string) => server.client(token);
  beforeAll(async () => {
    server = await sharedServer();
    ({ account, owner, stranger } = await ownerAndStranger(server));
    const key = { label: 'k', permissions: ['events:read'] };
    user_api_key = (await owner.send('POST', '/v1/api-keys', key)).body.data.key;
  });

  const make = async (given: object = {}, api = owner) =>
    (await api.send('POST', '/v1/tokens', { permissions: ['chat:read', 'tokens:read'], ...given })).body.data;
  const exchange = (token: string) => as('').send('POST', '/v1/auth/popout/exchange', { token });
  const session = async (token: string) => (await exchange(token)).body.data.token as string;
  const cookie = (value: string) => ({ cookie: `theme=dark; lumio-popout-token=${value}` });
  /** Without an `Authorization` header, as a page calls. */
  const page = async (method: string, path: string, headers: Record<string, string>, body?: unknown) => {
    const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const sent = {
      method,
      headers: { ...json, ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
    const response = await fetch(server.base_url + path, sent);
    return { status: response.status, body: await response.json().catch(() => null) };
  };
  const upgrade = (token: string) =>
    new Promise<WebSocket | { status: number; error: string }>((done) => {
      const socket = new WebSocket(`${server.ws_url}?token=${token}`);
      socket.once('open', () => done(socket));
      socket.once('unexpected-response', (_request, response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => done({ status: response.statusCode!, error: JSON.parse(text).error }));
      });
      socket.on('error', () => undefined);
    });
  const closing = (socket: WebSocket) =>
    new Promise<{ code: number; reason: string; error: string }>((done) => {
      let error = '';
      socket.on('message', (data: Buffer) => (error = JSON.parse(data.toString()).code ?? error));
      socket.once('close', (code, reason) => done({ code, reason: reason.toString(), error }));
    });

  test('is created for its creator, shown once, listed, changed and revoked', async () => {
    const { account_id, user_id } = account;
    const made = await owner.send('POST', '/v1/tokens', { permissions: ['chat:read'] });
    expect(made.status).toBe(201);
    const { token, ...record } = made.body.data;
    expect(token).toMatch(/^lm_pop_[0-9a-f]{64}$/);
    expect(record).toEqual({
      id: expect.any(String),
      account_id,
      user_id,
      token_prefix: token.slice(0, 9),
      label: null,
      permissions: ['chat:read'],
      created_at: expect.any(String),
      expires_at: null,
      revoked_at: null,
    });
    const listed = await owner.get('/v1/tokens');
    expect(listed.body.data[0]).toEqual(record);
    expect(listed.text).not.toContain(token);
    expect((await as(token).get('/v1/tokens/me')).body.data).toEqual({
      permissions: ['chat:read'],
      admin_permissions: [],
      user_permissions: [],
    });
    expect((await page('GET', `/v1/tokens/me?token=${token}`, {})).status).toBe(200);

    const path = `/v1/tokens/${record.id}`;
    for (const [method, body] of [
      ['PATCH', { label: 'x' }],
      ['DELETE', undefined],
    ] as const) {
      expect(await stranger.send(method, path, body)).toMatchObject({
        status: 404,
        body: { error: 'NOT_FOUND', message: 'Popout token not found' },
      });
    }
    expect((await owner.send('PATCH', path, { label: 'Chat' })).body.data).toEqual({ ...record, label: 'Chat' });
    // A date that is past ends it softly; taking that back revives it.
    expect((await owner.send('PATCH', path, { expires_at: PAST })).body.data).toMatchObject({ expires_at: PAST });
    expect((await as(token).get('/v1/tokens/me')).status).toBe(401);
    expect((await owner.send('PATCH', path, { expires_at: null })).status).toBe(200);
    expect((await as(token).get('/v1/tokens/me')).status).toBe(200);

    expect((await owner.send('DELETE', path, undefined)).status).toBe(204);
    expect((await as(token).get('/v1/tokens/me')).status).toBe(401);
    expect((await owner.send('DELETE', path, undefined)).status).toBe(204);
    expect((await owner.get('/v1/tokens')).body.data[0]).toMatchObject({
      id: record.id,
      revoked_at: expect.any(String),
    });
    expect(await owner.send('PATCH', path, { expires_at: null })).toMatchObject({
      status: 409,
      body: { error: 'CONFLICT', message: 'The popout token was revoked' },
    });
  });

  test('the same over GraphQL', async () => {
    const fields = 'id accountId userId tokenPrefix label permissions createdAt expiresAt revokedAt';
    const { data } = await owner.gql(
      `mutation { createPopoutToken(input: {label: "g", permissions: ["chat:read"]}) { token popoutToken { ${fields} } } }`,
    );
    const { token, popoutToken: made } = data.createPopoutToken;
    expect((await as(token).gql('{ myPermissions }')).data.myPermissions).toEqual(['chat:read']);
    expect((await owner.gql(`{ popoutTokens { ${fields} } }`)).data.popoutTokens).toContainEqual(made);
    const renamed = await owner.gql(`mutation { updatePopoutToken(input: {id: "${made.id}", label: "h"}) { label } }`);
    expect(renamed.data.updatePopoutToken).toEqual({ label: 'h' });
    const query = `mutation { exchangePopoutToken(token: "${token}") { token expiresAt accountId } }`;
    const { body: exchanged, headers } = await as('').send('POST', '/v1/gql', { query });
    expect(headers.get('set-cookie')).toContain(`lumio-popout-token=${exchanged.data.exchangePopoutToken.token}; `);
    expect(exchanged.data.exchangePopoutToken).toMatchObject({ accountId: account.account_id });
    const page = as(exchanged.data.exchangePopoutToken.token);
    const mint = 'mutation { issuePopoutWsToken { wsToken } }';
    const ws = await page.gql(mint);
    expect(ws.data.issuePopoutWsToken.wsToken).toMatch(/^lm_eyJ/);
    // Neither the raw token, nor the ws token, nor a person's session is a popout session.
    for (const [by, code] of [
      [token, 'FORBIDDEN'],
      [account.access_token, 'FORBIDDEN'],
      [ws.data.issuePopoutWsToken.wsToken, 'UNAUTHORIZED'],
    ] as const)
      expect((await as(by).gql(mint)).errors[0].extensions.code).toBe(code);
    const deleted = await owner.gql(`mutation { deletePopoutToken(id: "${made.id}") { success } }`);
    expect(deleted.data.deletePopoutToken).toEqual({ success: true });
  });

  test.each([
    [{ expires_at: PAST }, 400, 'VALIDATION_ERROR', 'expires_at cannot be in the past'],
    [{ expires_at: 'soon' }, 400, 'VALIDATION_ERROR', 'expires_at must be an RFC 3339 date-time'],
    [{ permissions: ['chat:*'] }, 400, 'VALIDATION_ERROR', 'Invalid permission: chat:*'],
    [{ user_id: uuid(99) }, 400, 'VALIDATION_ERROR', 'user_id must be a member of the account'],
  ])('%j is answered %i %s', async (body, status, error, message) => {
    const answer = await owner.send('POST', '/v1/tokens', { permissions: ['chat:read'], ...body });
    expect(answer).toMatchObject({ status, body: { error, message } });
  });

  test('grants no more than its creator holds, and no key of another kind creates one', async () => {
    const key = (
      await owner.send('POST', '/v1/api-keys', { label: 'n', permissions: ['tokens:create', 'tokens:edit'] })
    ).body.data.key;
    const wide = { permissions: ['account:delete'] };
    expect(await as(key).send('POST', '/v1/tokens', wide)).toMatchObject({
      status: 403,
      body: { message: 'Missing permission: account:delete' },
    });
    const popout = await make({ permissions: ['tokens:create', 'tokens:edit'], expires_at: '2999-01-01T00:00:00Z' });
    for (const token of [popout.token, await session(popout.token)]) {
      expect(await as(token).send('POST', '/v1/tokens', { permissions: ['tokens:edit'] })).toMatchObject({
        status: 403,
        body: { error: 'FORBIDDEN', message: 'This action requires a logged-in user' },
      });
      expect(await as(token).send('PATCH', `/v1/tokens/${popout.id}`, { expires_at: null })).toMatchObject({
        status: 403,
        body: { message: 'A popout token cannot let itself live longer' },
      });
    }
    // Who may edit does not revive what it could not have made.
    const other = await make({ permissions: ['account:delete'], expires_at: '2999-01-01T00:00:00Z' });
    expect(await as(key).send('PATCH', `/v1/tokens/${other.id}`, { expires_at: null })).toMatchObject({
      status: 403,
      body: { message: 'Missing permission: account:delete' },
    });
    expect((await as(key).send('PATCH', `/v1/tokens/${other.id}`, { expires_at: PAST })).status).toBe(200);
  });

  test('lives no longer than the key that changes it, and no popout token lets another live longer', async () => {
    const in_hours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
    const permissions = ['tokens:create', 'tokens:edit', 'chat:read'];
    const maker = { label: 'short', permissions, expires_at: in_hours(1) };
    const key = as((await owner.send('POST', '/v1/api-keys', maker)).body.data.key);
    const { id } = await make({ permissions: ['chat:read'] }, key);
    const change = (by: ApiClient, expires_at: string | null) => by.send('PATCH', `/v1/tokens/${id}`, { expires_at });
    const beyond = { status: 403, body: { message: 'A key cannot make one that lives longer than itself' } };
    for (const later of [null, in_hours(2)]) expect(await change(key, later)).toMatchObject(beyond);
    const mutation = `mutation { updatePopoutToken(input: {id: "${id}", expiresAt: null}) { id } }`;
    expect((await key.gql(mutation)).errors[0]).toMatchObject({ message: beyond.body.message });
    // Ended by a date in the past, it comes back no further than the key reaches.
    expect((await change(key, PAST)).status).toBe(200);
    expect(await change(key, null)).toMatchObject(beyond);
    expect((await change(key, in_hours(0.5))).status).toBe(200);

    const editor = as((await make({ permissions: ['tokens:edit', 'chat:read'] })).token);
    for (const later of [null, in_hours(1)])
      expect(await change(editor, later)).toMatchObject({
        status: 403,
        body: { message: 'A popout token cannot let another one live longer' },
      });
    expect((await change(editor, in_hours(0.1))).status).toBe(200);
    expect((await change(owner, null)).status).toBe(200);
  });

  test('acts under the name of its maker when it acts for another member', async () => {
    const { account_id, user_id: owner_id } = account;
    const maker = await server.member(account_id, 'administrator');
    const permissions = ['apikeys:create', 'apikeys:delete', 'audit-log:read'];
    const { token } = await make({ permissions, user_id: owner_id }, as(maker.access_token));
    const made = await as(token).send('POST', '/v1/service-keys', { label: 's', permissions: ['audit-log:read'] });
    expect(made).toMatchObject({ status: 201, body: { data: { created_by: maker.user_id } } });
    const logged = async (api: ApiClient) =>
      (await api.get(`/v1/account/audit-log?target_id=${made.body.data.id}`)).body.data as { actor: object }[];
    const { actor } = await eventually(async () => (await logged(owner))[0], 'the entry');
    const label = expect.any(String);
    expect(actor).toEqual({ kind: 'popout', id: maker.user_id, label, acts_for: owner_id });
    expect(await logged(as(token))).toEqual(await logged(owner));
    const by = async (id: string) => (await owner.get(`/v1/account/audit-log?actor_id=${id}`)).body.data as unknown[];
    expect(await by(maker.user_id)).toContainEqual(expect.objectContaining({ actor }));
    expect(await by(owner_id)).not.toContainEqual(expect.objectContaining({ actor }));
    const query = `{ accountAuditLog(targetId: "${made.body.data.id}") { items { actor { id actsFor } } } }`;
    const { data } = await owner.gql(query);
    expect(data.accountAuditLog.items).toEqual([{ actor: { id: maker.user_id, actsFor: owner_id } }]);
    const verified = await runLumio(['audit', 'verify', '--account', account_id], server.env);
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining('1 of 1 chains hold') });
  });

  test('names its maker as the creator of all that it makes, also in a session', async () => {
    const { account_id, user_id: owner_id } = account;
    const maker = await server.member(account_id, 'administrator');
    const permissions = ['apikeys:create', 'apikeys:read', 'sounds:create', 'widgets:create', 'widgets:access-grant'];
    const { token } = await make({ permissions, user_id: owner_id }, as(maker.access_token));
    const page = as(await session(token));
    const made = async (method: string, path: string, body: object) => {
      const answer = await page.send(method, path, body);
      expect([path, answer.status, answer.body.error]).toEqual([path, method === 'PUT' ? 200 : 201, undefined]);
      return answer.body.data;
    };
    const key = await made('POST', '/v1/service-keys', { label: 's', permissions: ['apikeys:read'] });
    expect(key.created_by).toBe(maker.user_id);
    const widget = await made('POST', '/v1/widgets', { type: 'text' });
    const copy = await made('POST', `/v1/widgets/${widget.id}/duplicate`, {});
    const access = `/v1/widgets/${widget.id}/access/${owner_id}`;
    expect((await made('PUT', access, { role: 'viewer' })).granted_by).toBe(maker.user_id);
    const sound = await uploadedSound(server.base_url, token);

    const db = new PostgresDatabase({ url: server.database_url, name: 'popout-makers', size: 1 });
    const created = await db
      .query<{ id: string; by: string }>(
        `select coalesce(data->>'key_id', data->>'widget_id', data->>'sound_id') as id, data->>'created_by' as by
         from domain_events where data->>'created_by' is not null and data->>'account_id' = $1`,
        [account_id],
      )
      .finally(() => db.close());
    const by = new Map(created.map((one) => [one.id, one.by]));
    for (const id of [key.id, widget.id, copy.id, sound]) expect(by.get(id)).toBe(maker.user_id);
  });

  test('is traded for a session, also a cookie, that is the token and ends with it', async () => {
    const { token, id } = await make();
    const answer = await exchange(token);
    expect(answer.status).toBe(200);
    const { token: jwt, expires_at, account_id } = answer.body.data;
    expect(Object.keys(answer.body.data).sort()).toEqual(['account_id', 'expires_at', 'token']);
    expect(account_id).toBe(account.account_id);
    const left = Date.parse(expires_at) - Date.now();
    expect(left > 14 * 60_000 && left <= 15 * 60_000).toBe(true);
    expect(answer.headers.get('set-cookie')).toBe(
      `lumio-popout-token=${jwt}; Path=/; HttpOnly; SameSite=Lax; Max-Age=900`,
    );

    // The same context, whichever way it comes; scripts of other sites change nothing with it.
    const permissions = ['chat:read', 'tokens:read'];
    expect((await as(jwt).get('/v1/tokens/me')).body.data.permissions.sort()).toEqual(permissions);
    expect((await page('GET', '/v1/tokens/me', cookie(jwt))).body.data.permissions.sort()).toEqual(permissions);
    const own = { ...cookie(jwt), origin: server.base_url };
    const foreign = { ...cookie(jwt), origin: 'https://elsewhere.example' };
    const query = { query: '{ myPermissions }' };
    expect((await page('POST', '/v1/gql', own, query)).body.data.myPermissions).toHaveLength(2);
    for (const headers of [foreign, cookie(jwt)]) {
      expect((await page('POST', '/v1/gql', headers, query)).body.errors[0].extensions.code).toBe('UNAUTHORIZED');
      expect((await page('POST', '/v1/auth/popout/ws-token', headers)).status).toBe(401);
    }
    // An Authorization header, right or wrong, is the only thing looked at.
    expect((await page('GET', '/v1/tokens/me', { ...cookie(jwt), authorization: 'Bearer x' })).status).toBe(401);
    // Nothing but a session of a popout counts in the cookie, and it is a person nowhere.
    for (const wrong of [account.access_token, user_api_key, token, 'x'])
      expect([wrong.slice(0, 8), (await page('GET', '/v1/tokens/me', cookie(wrong))).status]).toEqual([
        wrong.slice(0, 8),
        401,
      ]);
    for (const path of ['/v1/api-keys', '/v1/auth/ws-token', '/v1/auth/logout-session']) {
      const method = path === '/v1/api-keys' ? 'GET' : 'POST';
      expect(await page(method, path, own)).toMatchObject({ status: 403, body: { error: 'FORBIDDEN' } });
    }
    expect((await as('').send('POST', '/v1/auth/refresh', { refresh_token: jwt })).status).toBe(401);

    expect((await owner.send('DELETE', `/v1/tokens/${id}`, undefined)).status).toBe(204);
    expect((await page('GET', '/v1/tokens/me', cookie(jwt))).status).toBe(401);
    expect((await as(jwt).get('/v1/tokens/me')).status).toBe(401);
    expect(await exchange(token)).toMatchObject({ status: 401 });
  });

  test('what is no living popout token is not traded', async () => {
    const ended = await make();
    await owner.send('PATCH', `/v1/tokens/${ended.id}`, { expires_at: PAST });
    const jwt = await session((await make()).token);
    const { access_token } = account;
    for (const token of ['', 'x', ended.token, `lm_pop_${'0'.repeat(64)}`, jwt, access_token, user_api_key]) {
      expect(await exchange(token)).toMatchObject({
        status: 401,
        body: { error: 'UNAUTHORIZED', message: 'Invalid or expired popout token' },
      });
    }
    expect((await exchange('')).headers.get('set-cookie')).toBeNull();
  });

  test('a ws token opens sockets alone, with the scope of its popout, and ends with it', async () => {
    const { token, id } = await make();
    const jwt = await session(token);
    const minted = await as(jwt).send('POST', '/v1/auth/popout/ws-token', undefined);
    const { ws_token } = minted.body.data;
    expect((await as(ws_token).get('/v1/tokens/me')).status).toBe(401);
    expect((await page('GET', `/v1/tokens/me?token=${ws_token}`, {})).status).toBe(401);
    expect((await page('GET', '/v1/tokens/me', cookie(ws_token))).status).toBe(401);
    expect((await page('POST', `/v1/auth/popout/ws-token?token=${token}`, {})).status).toBe(403);
    for (const [who, status] of [
      ['', 401],
      [account.access_token, 403],
      [user_api_key, 403],
      [token, 403],
    ] as const)
      expect((await as(who).send('POST', '/v1/auth/popout/ws-token', undefined)).status).toBe(status);

    const socket = (await upgrade(ws_token)) as WebSocket;
    const answers: { type: string; channel?: string; code?: string }[] = [];
    socket.on('message', (data: Buffer) => answers.push(JSON.parse(data.toString())));
    for (const channel of ['chat', 'events']) {
      socket.send(JSON.stringify({ type: 'subscribe', channel: `${channel}:${account.account_id}` }));
    }
    await eventually(async () => answers.find(({ code }) => code === 'UNAUTHORIZED'), 'the refusal');
    expect(answers.map(({ type }) => type)).toEqual(expect.arrayContaining(['subscribed', 'error']));

    const raw = (await upgrade(token)) as WebSocket;
    const ends = [socket, raw].map(closing);
    await owner.send('DELETE', `/v1/tokens/${id}`, undefined);
    expect(await inTime(Promise.all(ends), server)).toEqual(
      Array(2).fill({ code: 4401, reason: 'TOKEN_REVOKED', error: 'TOKEN_REVOKED' }),
    );
    expect(await upgrade(ws_token)).toEqual({ status: 401, error: 'UNAUTHORIZED' });
  });

  test('a soft end closes its sockets, and the sessions of one token share its bucket', async () => {
    const { token, id } = await make();
    const [first, second] = [await session(token), await session(token)];
    const left = async (who: string) => {
      const { headers } = await as(who).send('GET', '/v1/tokens/me', undefined);
      return [headers.get('ratelimit-limit'), Number(headers.get('ratelimit-remaining'))];
    };
    expect([await left(token), await left(first), await left(second)]).toEqual([
      ['600', 599],
      ['600', 598],
      ['600', 597],
    ]);
    expect(await left((await make()).token)).toEqual(['600', 599]);
    const socket = (await upgrade(token)) as WebSocket;
    const end = closing(socket);
    await owner.send('PATCH', `/v1/tokens/${id}`, { expires_at: PAST });
    expect(await end).toEqual({ code: 4401, reason: 'TOKEN_EXPIRED', error: 'TOKEN_EXPIRED' });
    expect(await upgrade(token)).toEqual({ status: 401, error: 'TOKEN_EXPIRED' });
  });

  test('ends with its maker and with whom it acts for, and holds no more than its maker does now', async () => {
    const { account_id, user_id } = account;
    const member = await server.member(account_id, 'administrator');
    const by = as(member.access_token);
    const [own, for_owner] = [await make({}, by), await make({ user_id }, by)];
    const for_member = await make({ user_id: member.user_id });
    expect([own.user_id, for_owner.user_id, for_member.user_id]).toEqual([member.user_id, user_id, member.user_id]);
    const tokens = [own, for_owner, for_member];
    const scopes = async () => {
      const answers = await Promise.all(tokens.map(({ token }) => as(token).get('/v1/tokens/me')));
      return answers.map(({ status, body }) => (status === 200 ? body.data.permissions.length : status));
    };
    expect(await scopes()).toEqual([2, 2, 2]);
    const sockets = await Promise.all(tokens.map(({ token }) => upgrade(token) as Promise<WebSocket>));
    const ends = sockets.map(closing);

    // A viewer may neither read the chat nor the tokens: what they made may not either. What the owner made still may.
    await server.operator.setMembership(account_id, member.user_id, 'viewer');
    const demoted = async () => (await scopes())[0] === 0 || undefined;
    await promised(demoted, 'the demotion', 1_000, probeOf(server));
    expect(await scopes()).toEqual([0, 0, 2]);
    for (const socket of sockets.slice(0, 2)) {
      // Let in or not until its rights are looked at again, it is off the channel then.
      const refused = new Promise((done) =>
        socket.on('message', (data: Buffer) => {
          const message = JSON.parse(data.toString());
          if (message.type === 'error') done(message);
        }),
      );
      socket.send(JSON.stringify({ type: 'subscribe', channel: `chat:${account_id}` }));
      expect(await refused).toMatchObject({ type: 'error', code: 'UNAUTHORIZED' });
    }

    const revoked = { code: 4401, reason: 'TOKEN_REVOKED', error: 'TOKEN_REVOKED' };
    expect((await owner.send('DELETE', `/v1/accounts/${account_id}/members/${member.user_id}`, undefined)).status).toBe(
      204,
    );
    expect(await scopes()).toEqual([401, 401, 401]);
    expect((await Promise.all(ends)).map(({ code, reason }) => [code, reason])).toEqual(
      ends.map(() => [revoked.code, revoked.reason]),
    );
    const listed = async () => {
      const { data } = (await owner.get('/v1/tokens?limit=100')).body;
      return tokens.every(({ id }) => data.some((one: any) => one.id === id && one.revoked_at !== null)) || undefined;
    };
    await eventually(listed, 'their revocation');
    await server.operator.setMembership(account_id, member.user_id, 'administrator');
    expect(await scopes()).toEqual([401, 401, 401]);
  });
});
