import { randomUUID } from 'node:crypto';
import WebSocket from 'ws';
import { type CallerKind } from '../../access/authentication/caller';
import { CONTEXTS, contextOf } from '../../access/authentication/contexts';
import { sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';
import type { Door } from '../support/door';
import { inTime, probeOf, promised } from '../support/patience';
import { eventually } from '../support/vendor-cloud';

/** One credential of each kind, on a real server, held against the tables of spec doc1 §5.1, 5.2, 5.6 and 5.9. */
interface Credential {
  token: string;
  /** Ends it, on the node that is asked or beside it. */
  end(): Promise<unknown>;
  /** What else is closed with it, where it was made of something. */
  also?: string;
}
interface Expected {
  /** By header, by `?token=` of a request, by `?token=` of an upgrade. */
  comes: [header: boolean, query: boolean, upgrade: boolean];
  /** `RateLimit-Limit`; null where there is none. */
  rate: string | null;
  /** `GET /v1/tokens/me`, and whether `GET /v1/api-keys` lets it through the first-party gate. */
  me: 200 | 401 | 403;
  first_party: boolean;
  /** Channels of its account that it may listen to. */
  hears: string[];
  make(): Promise<Credential>;
}

let server: SharedServer;
let account: MadeAccount & { door: Door };
const [overlay_id, widget_id, install_id, extension_id] = [1, 2, 3, 4].map(() => randomUUID()) as [
  string,
  string,
  string,
  string,
];
beforeAll(async () => {
  server = await sharedServer();
  account = await server.account();
  await server.operator.setAdminRole(account.user_id, 'super-admin', true);
});

const SCOPE = ['events:read', 'chat:read'];
const made = async (path: string, body: object) => {
  const { json } = await account.door.rest('POST', path, { body });
  const { id, key, token } = json.data as Record<string, string>;
  return { token: (key ?? token)!, id: id!, end: () => account.door.rest('DELETE', `${path}/${id}`) };
};
const bound = async (
  kind: 'overlay' | 'shared_overlay' | 'extension' | 'widget',
  resource_id: string,
  channel: string,
) => {
  const { account_id } = account;
  const token = await server.operator.createBoundToken({
    ...{ kind, account_id, resource_id, channel, extension_id, install_grants: ['events:read', 'chat:send'] },
    expires_at: kind === 'shared_overlay' ? new Date(Date.now() + 3_600_000).toISOString() : null,
  });
  return { ...token, end: () => server.operator.revokeBoundToken(account_id, token.id) };
};
const popout = () => made('/v1/tokens', { permissions: SCOPE });

const CREDENTIALS: Record<string, Expected> = {
  system_key: {
    comes: [true, false, false],
    rate: null,
    me: 200,
    first_party: false,
    hears: ['events', 'chat', 'sounds'],
    make: () => made('/v1/admin/system-keys', { label: 'k', permissions: ['events:*', 'chat:read'] }),
  },
  user_api_key: {
    comes: [true, false, false],
    rate: '1200',
    me: 200,
    first_party: true,
    hears: ['events', 'chat', 'sounds'],
    make: () => made('/v1/api-keys', { label: 'k', permissions: SCOPE }),
  },
  service_key: {
    comes: [true, false, false],
    rate: '1200',
    me: 200,
    first_party: false,
    hears: ['events', 'chat', 'sounds'],
    make: () => made('/v1/service-keys', { label: 'k', permissions: SCOPE }),
  },
  jwt: {
    comes: [true, false, true],
    rate: '600',
    me: 200,
    first_party: true,
    hears: ['events', 'chat', 'sounds', 'automations'],
    async make() {
      const { access_token, refresh_token, door } = await server.session(account.user_id, account.account_id);
      return { token: access_token, end: () => door.rest('POST', '/v1/auth/logout', { body: { refresh_token } }) };
    },
  },
  popout: {
    comes: [true, true, true],
    rate: '600',
    me: 200,
    first_party: false,
    hears: ['events', 'chat', 'sounds'],
    async make() {
      const one = await popout();
      const { json } = await server.door('').rest('POST', '/v1/auth/popout/exchange', { body: { token: one.token } });
      return { ...one, also: json.data.token };
    },
  },
  overlay: {
    comes: [true, true, true],
    rate: '600',
    me: 403,
    first_party: false,
    hears: ['overlay', 'sounds'],
    make: () => bound('overlay', overlay_id, `overlay:${overlay_id}`),
  },
  shared_overlay: {
    comes: [true, true, true],
    rate: '600',
    me: 403,
    first_party: false,
    hears: ['overlay', 'sounds'],
    make: () => bound('shared_overlay', overlay_id, `overlay:${overlay_id}`),
  },
  extension: {
    comes: [true, true, true],
    rate: '600',
    me: 403,
    first_party: false,
    hears: ['ext-storage', 'events'],
    make: () => bound('extension', install_id, `ext-storage:${install_id}`),
  },
  widget: {
    comes: [true, true, true],
    rate: '600',
    me: 403,
    first_party: false,
    hears: ['widget', 'sounds'],
    make: () => bound('widget', widget_id, `widget:${widget_id}`),
  },
};
const KINDS = Object.keys(CREDENTIALS) as (CallerKind & keyof typeof CREDENTIALS)[];

test('the tenth context is who brings nothing', async () => {
  expect([...KINDS, 'anonymous'].sort()).toEqual(Object.keys(CONTEXTS).sort());
  const nobody = server.door('');
  const { status, headers } = await nobody.rest('GET', '/v1/tokens/me');
  expect([status, headers.get('ratelimit-limit'), headers.get('www-authenticate')]).toEqual([401, '120', 'Bearer']);
  expect((await nobody.rest('GET', '/v1/.well-known/jwks.json')).status).toBe(200);
  const socket = await open(null);
  expect(await heardBy(socket)).toEqual([]);
  socket.close();
});

describe.each(KINDS)('%s', (kind) => {
  const { comes, rate, me, first_party, hears, make } = CREDENTIALS[kind]!;
  const status = async (token: string) => (await server.door(token).rest('GET', '/v1/tokens/me')).status;

  test('comes where it may, is counted as its kind, and reaches what its kind may', async () => {
    const { token } = await make();
    const { prefix, length } = contextOf(kind);
    expect([token.startsWith(prefix!), length ?? token.length]).toEqual([true, token.length]);
    const door = server.door(token);
    const own = await door.rest('GET', '/v1/tokens/me', { headers: { 'x-lumio-account': account.account_id } });
    expect([own.status, own.headers.get('ratelimit-limit')]).toEqual([me, rate]);
    expect((await door.rest('GET', '/v1/.well-known/jwks.json')).status).toBe(200);
    const keys = await door.rest('GET', '/v1/api-keys');
    const gate = 'This action requires a logged-in user';
    expect([keys.status === 403, keys.json.message === gate]).toEqual(
      first_party ? [keys.status === 403, false] : [true, true],
    );

    const nobody = server.door('');
    const query = await nobody.rest('GET', `/v1/tokens/me?token=${token}`);
    expect(query.status).toBe(comes[1] ? me : 401);
    const upgraded = await open(null, token).catch((refusal: unknown) => refusal);
    expect(upgraded instanceof WebSocket ? 101 : upgraded).toEqual(
      comes[2] ? 101 : { status: 401, error: 'UNAUTHORIZED' },
    );
    const socket = await open(token);
    expect(await heardBy(socket)).toEqual(hears);
    for (const one of [socket, upgraded]) if (one instanceof WebSocket) one.close();
  });

  test('is nobody under another prefix, a character off, or beside a header that is final', async () => {
    const { token } = await make();
    const { prefix } = contextOf(kind);
    const secret = token.slice(prefix!.length);
    const others = KINDS.map((other) => contextOf(other).prefix!).filter((other) => other !== prefix);
    const wrong = [...others.map((other) => other + secret), token.slice(0, -1), `${token}0`, secret];
    const answers = await Promise.all(wrong.map(status));
    expect(answers).toEqual(wrong.map(() => 401));
    // A header with a known prefix is final, right or wrong.
    const made_up = `lm_usr_${'0'.repeat(64)}`;
    const beside = await server.door(made_up).rest('GET', `/v1/tokens/me?token=${token}`);
    expect(beside.status).toBe(401);
  });

  test('once ended it is nobody, and its sockets are closed', async () => {
    const { token, also, end } = await make();
    const opened = [token, ...(also === undefined ? [] : [also])];
    const sockets = await Promise.all(opened.map((one) => open(one)));
    const ends = sockets.map(closing);
    expect(await Promise.all(opened.map(status))).toEqual(opened.map(() => me));
    await end();
    // What was ended beside the server, not by it, holds for at most a second.
    const refused = async () => (await status(token)) === 401 || undefined;
    await promised(refused, 'the end of the credential', 1_000, probeOf(server));
    expect(await inTime(Promise.all(ends), server)).toEqual(
      opened.map(() => ({ code: 4401, reason: 'TOKEN_REVOKED', said: 'TOKEN_REVOKED' })),
    );
    expect(await Promise.all(opened.map(status))).toEqual(opened.map(() => 401));
    expect(await open(token).catch((refusal: unknown) => refusal)).toEqual({ status: 401, error: 'UNAUTHORIZED' });
  });
});

test('an operator’s token of an overlay is made and revoked with entries in the audit log', async () => {
  const { account_id, door } = account;
  const of = { kind: 'overlay', account_id, resource_id: overlay_id, channel: 'overlay:secret key' } as const;
  const { id } = await server.operator.createBoundToken({ ...of, expires_at: null });
  await server.operator.revokeBoundToken(account_id, id);
  const entries = async () => {
    const { data } = (await door.rest('GET', `/v1/account/audit-log?target_id=${id}`)).json;
    return data.length === 2 ? (data as object[]) : undefined;
  };
  const actor = { kind: 'system_key', id: 'lumio-admin' };
  expect(await eventually(entries, 'both entries')).toMatchObject([
    { action: 'bound_token:revoked', actor, target: { kind: 'bound_token', id } },
    { action: 'bound_token:created', actor, after: { kind: 'overlay', resource_id: overlay_id, expires_at: null } },
  ]);
  expect(JSON.stringify(await entries())).not.toContain('secret key');
});

test('a shared overlay ends by itself on its open socket', async () => {
  const { account_id } = account;
  const { token } = await server.operator.createBoundToken({
    ...{ kind: 'shared_overlay', account_id, resource_id: overlay_id, channel: `overlay:${overlay_id}` },
    expires_at: new Date(Date.now() + 2_000).toISOString(),
  });
  const socket = await open(null, token);
  expect(await closing(socket)).toEqual({ code: 4401, reason: 'TOKEN_EXPIRED', said: 'TOKEN_EXPIRED' });
  expect(await open(null, token).catch((refusal: unknown) => refusal)).toEqual({ status: 401, error: 'TOKEN_EXPIRED' });
});

test('all that opens an account ends with it', async () => {
  const { account_id, name, door } = await server.account();
  const scope = { label: 'k', permissions: SCOPE };
  const made = await Promise.all(
    ['/v1/api-keys', '/v1/service-keys', '/v1/tokens'].map(async (path) => {
      const { key, token } = (await door.rest('POST', path, { body: scope })).json.data;
      return (key ?? token) as string;
    }),
  );
  const of = { kind: 'overlay', account_id, resource_id: overlay_id, channel: `overlay:${overlay_id}` } as const;
  made.push((await server.operator.createBoundToken({ ...of, expires_at: null })).token);
  const ends = (await Promise.all(made.map((token) => open(token)))).map(closing);
  const body = { confirm_name: name };
  expect((await door.rest('DELETE', `/v1/accounts/${account_id}`, { body })).status).toBe(200);
  const answers = await Promise.all(made.map((token) => server.door(token).rest('GET', '/v1/tokens/me')));
  expect(answers.map(({ status }) => status)).toEqual(made.map(() => 401));
  const closed = { code: 4401, reason: 'TOKEN_REVOKED', said: 'TOKEN_REVOKED' };
  expect(await Promise.all(ends)).toEqual(made.map(() => closed));
});

/** A socket that has said welcome; rejects with what the upgrade was refused by. */
function open(bearer: string | null, query?: string): Promise<WebSocket> {
  const url = query === undefined ? server.ws_url : `${server.ws_url}?token=${query}`;
  const from = `10.99.${Math.floor(Math.random() * 256)}.${Math.floor(Math.random() * 256)}`;
  const authorization: Record<string, string> = bearer === null ? {} : { authorization: `Bearer ${bearer}` };
  const socket = new WebSocket(url, { headers: { 'x-forwarded-for': from, ...authorization } });
  return new Promise((done, fail) => {
    socket.once('message', () => done(socket));
    socket.once('unexpected-response', (_request, response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => fail({ status: response.statusCode, error: JSON.parse(text).error }));
    });
    socket.on('error', () => undefined);
  });
}

const closing = (socket: WebSocket) =>
  new Promise<{ code: number; reason: string; said: string }>((done) => {
    let said = '';
    socket.on('message', (data: Buffer) => (said = JSON.parse(data.toString()).code ?? said));
    socket.once('close', (code, reason) => done({ code, reason: reason.toString(), said }));
  });

/** Which of the account's channels, and of its overlay, widget and install, let it subscribe. */
async function heardBy(socket: WebSocket): Promise<string[]> {
  const { account_id } = account;
  const channels = [
    ...[`overlay:${overlay_id}`, `widget:${widget_id}`, `ext-storage:${install_id}`],
    ...['events', 'chat', 'sounds', 'automations'].map((family) => `${family}:${account_id}`),
    // Those of another resource, and of nobody.
    ...[`overlay:${widget_id}`, `widget:${install_id}`, `ext-storage:${account_id}`, `sounds:${install_id}`],
  ];
  const answers: { type: string; channel: string }[] = [];
  const told = new Promise<void>((done) => {
    socket.on('message', (data: Buffer) => {
      answers.push(JSON.parse(data.toString()));
      if (answers.length === channels.length) done();
    });
  });
  for (const channel of channels) socket.send(JSON.stringify({ type: 'subscribe', channel }));
  await told;
  return answers.flatMap(({ type, channel }) =>
    type === 'subscribed' ? [channel.slice(0, channel.indexOf(':'))] : [],
  );
}
