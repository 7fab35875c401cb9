import { createHash, randomBytes, randomInt, randomUUID } from 'node:crypto';
import pg from 'pg';
import { KNOWN_FLAGS } from '../../../domain/operators/feature-flags';
import { pause } from '../../../lib/async/signal';
import { WAIT_MS } from '../../../projections/runtime/status/read-models';
import { inTime, probeOf, promised } from '../../support/patience';
import { Client, refused } from '../../support/realtime';
import { startServer, type TestServer } from '../../support/server';
import { type MadeMember, type SharedServer, sharedServer } from '../../support/shared-server';
import { ApiClient } from '../../support/vendor-cloud';

/** A credential that works on both nodes, and how it ends, or loses what it was good for, on the first. */
interface Held {
  token: string;
  end(): Promise<unknown>;
  /** What it reads while it is good. */
  path?: string;
  headers?: Record<string, string>;
  /** What its sockets listen to; null for none. */
  channel?: string | null;
  /** A token that opens a socket, minted of it before. */
  ws_token?: string;
  /** It ends by way of the other node, whose answers wait no longer than usual. */
  there?: true;
  /** `lumio admin` ends it, beside both nodes; it holds no permission, and is refused as one who is known. */
  beside?: true;
}
const EVENTS = KNOWN_FLAGS.find(({ key }) => key === 'feature:events')!;
type Ends = [
  kind: string,
  after: number,
  socket: 'cut' | 'goes on' | 'UNAUTHORIZED' | 'FEATURE_DISABLED',
  make: () => Promise<Held>,
];

/** Source: spec rulings, "revocation times": requests at once here and within 1 s there, sockets within 5 s. */
describe('what is ended on one node is over on the other', () => {
  let here: SharedServer;
  let there: TestServer;
  let root: ApiClient;

  beforeAll(async () => {
    here = await sharedServer();
    const { LUMIO_SECRETS__KEYS } = here.env;
    const shared = { LUMIO_DATABASE__URL: here.database_url, LUMIO_SECRETS__KEYS: LUMIO_SECRETS__KEYS! };
    const usual = { LUMIO_READ_MODELS__WAIT: `${WAIT_MS}ms` };
    there = await startServer({ embedded: true, env: { ...shared, ...usual, LUMIO_TRUSTED_PROXIES: '127.0.0.1' } });
    const { user_id, account_id } = await here.account();
    await here.operator.setAdminRole(user_id, 'super-admin', true);
    root = here.client((await here.session(user_id, account_id)).access_token);
  });
  const holders: Promise<void>[] = [];
  afterAll(async () => {
    await Promise.all(holders);
    await there?.dispose();
  });

  const done = async (sent: Promise<{ status: number; body: any }>) => {
    const { status, body } = await sent;
    expect([status < 300, body?.message]).toEqual([true, undefined]);
    return body?.data ?? body;
  };
  const roleOf = async (api: ApiClient, slug: string): Promise<string> =>
    (await done(api.get('/v1/roles'))).find((role: { slug: string }) => role.slug === slug).id;
  const owner = async () => {
    const made = await here.account();
    return { ...made, api: here.client(made.access_token) };
  };
  const member = async (role: string) => {
    const boss = await owner();
    return { boss, ...(await here.member(boss.account_id, role)) };
  };
  const administrator = async () => {
    const { boss, access_token: token, user_id, account_id } = await member('administrator');
    const role_id = await roleOf(boss.api, 'viewer');
    const path = `/v1/accounts/${account_id}/members/${user_id}`;
    const demote = (api = boss.api) => done(api.send('PATCH', path, { role_id }));
    return { boss, token, demote };
  };
  const login = async () => {
    const { user_id, account_id, api } = await owner();
    return { ...(await here.session(user_id, account_id)), api };
  };
  const idOf = async (session: MadeMember): Promise<string> => {
    const { data } = (await here.client(session.access_token).get('/v1/users/me/sessions')).body;
    return data.find(({ current }: { current: boolean }) => current).id;
  };
  const key = { label: 'Bot', permissions: ['events:read'] };

  /** A key or token that is made and deleted below one path. */
  const madeAt = async (path: string, more: object = {}) => {
    const { api, account_id, user_id } = await owner();
    const made = await done(api.send('POST', path, { ...key, ...more }));
    const end = () => done(api.send('DELETE', `${path}/${made.id}`, undefined));
    return { token: (made.key ?? made.token) as string, end, account_id, user_id };
  };
  const bound = async (kind: 'overlay' | 'shared_overlay' | 'extension' | 'widget', prefix: string): Promise<Held> => {
    const { account_id } = await owner();
    const resource_id = randomUUID();
    const channel = `${prefix}:${resource_id}`;
    const expires_at = new Date(Date.now() + 600_000).toISOString();
    const wanted = { kind, account_id, resource_id, channel, expires_at, install_grants: [] };
    const { id, token } = await here.operator.createBoundToken(wanted);
    return { token, channel, beside: true, end: () => here.operator.revokeBoundToken(account_id, id) };
  };
  const oauth = async (): Promise<Held & { client_id: string }> => {
    const { api, account_id } = await owner();
    const redirect_uri = 'https://deck.example/cb';
    const grants = { scopes: ['events:read'], grant_types: ['authorization_code', 'refresh_token'] };
    const client = { name: 'Deck', client_type: 'public', redirect_uris: [redirect_uri], ...grants };
    const { client_id } = await done(root.send('POST', '/v1/admin/oauth-clients', client));
    const code_verifier = randomBytes(32).toString('base64url');
    const { code } = await done(
      api.send('POST', '/v1/auth/authorize', {
        ...{ client_id, redirect_uri, response_type: 'code', scope: 'events:read' },
        code_challenge: createHash('sha256').update(code_verifier).digest('base64url'),
        code_challenge_method: 'S256',
      }),
    );
    const asked = { grant_type: 'authorization_code', client_id, code, redirect_uri, code_verifier };
    const { access_token } = await done(here.client('').send('POST', '/v1/auth/token', asked));
    const end = () => done(root.send('DELETE', `/v1/admin/oauth-clients/${client_id}`, undefined));
    return { token: access_token, channel: `events:${account_id}`, end, client_id };
  };
  const popout = async () => {
    const made = await madeAt('/v1/tokens');
    return { ...made, channel: `events:${made.account_id}` };
  };

  const CASES: Ends[] = [
    [
      'a session by logout',
      401,
      'cut',
      async () => {
        const { access_token: token, refresh_token, account_id } = await login();
        const end = () => done(here.client('').send('POST', '/v1/auth/logout', { refresh_token }));
        const { ws_token } = await done(here.client(token).send('POST', '/v1/auth/ws-token', {}));
        return { token, ws_token, channel: `events:${account_id}`, end };
      },
    ],
    [
      'a session by its owner',
      401,
      'cut',
      async () => {
        const session = await login();
        const path = `/v1/users/me/sessions/${await idOf(session)}`;
        return { token: session.access_token, end: () => done(session.api.send('DELETE', path, undefined)) };
      },
    ],
    [
      'the other sessions of its owner',
      401,
      'cut',
      async () => {
        const { access_token: token, api } = await login();
        return { token, end: () => done(api.send('DELETE', '/v1/users/me/sessions', undefined)) };
      },
    ],
    [
      'a session whose refresh token comes twice',
      401,
      'cut',
      async () => {
        const { refresh_token: first } = await login();
        const refresh = (refresh_token: string) => here.client('').send('POST', '/v1/auth/refresh', { refresh_token });
        const second = await done(refresh(first));
        const { token } = await done(refresh(second.refresh_token));
        return { token, end: async () => expect((await refresh(first)).status).toBe(401) };
      },
    ],
    ['a user API key', 401, 'cut', () => madeAt('/v1/api-keys')],
    ['a service key', 401, 'cut', () => madeAt('/v1/service-keys')],
    [
      'a system key',
      401,
      'cut',
      async () => {
        const path = '/v1/admin/system-keys';
        const made = await done(root.send('POST', path, key));
        const end = () => done(root.send('DELETE', `${path}/${made.id}`, undefined));
        const { account_id } = await owner();
        return { token: made.key, headers: { 'x-lumio-account': account_id }, end };
      },
    ],
    ['a popout token', 401, 'cut', popout],
    [
      'the session of a popout token',
      401,
      'cut',
      async () => {
        const { token, ...held } = await popout();
        const session = await done(here.client('').send('POST', '/v1/auth/popout/exchange', { token }));
        return { ...held, token: session.token };
      },
    ],
    [
      'the ws token of a popout session',
      401,
      'cut',
      async () => {
        const { token, ...held } = await popout();
        const session = await done(here.client('').send('POST', '/v1/auth/popout/exchange', { token }));
        const { ws_token } = await done(here.client(session.token).send('POST', '/v1/auth/popout/ws-token', {}));
        return { ...held, token: session.token, ws_token };
      },
    ],
    ['the token of an overlay', 401, 'cut', () => bound('overlay', 'overlay')],
    ['the token of a shared overlay', 401, 'cut', () => bound('shared_overlay', 'overlay')],
    ['the token of an extension', 401, 'cut', () => bound('extension', 'ext-storage')],
    ['the token of a widget', 401, 'cut', () => bound('widget', 'widget')],
    [
      'a membership',
      403,
      'UNAUTHORIZED',
      async () => {
        const { boss, access_token: token, user_id, account_id } = await member('moderator');
        const path = `/v1/accounts/${account_id}/members/${user_id}`;
        return { token, channel: `events:${account_id}`, end: () => done(boss.api.send('DELETE', path, undefined)) };
      },
    ],
    [
      'a popout token whose maker is removed',
      401,
      'cut',
      async () => {
        const { boss, access_token, user_id, account_id } = await member('administrator');
        const made = await done(
          here.client(access_token).send('POST', '/v1/tokens', { ...key, user_id: boss.user_id }),
        );
        const path = `/v1/accounts/${account_id}/members/${user_id}`;
        return { token: made.token, end: () => done(boss.api.send('DELETE', path, undefined)) };
      },
    ],
    [
      'a permission of a role',
      403,
      'UNAUTHORIZED',
      async () => {
        const { boss, access_token: token, account_id } = await member('moderator');
        const role_id = await roleOf(boss.api, 'moderator');
        const end = () => done(boss.api.send('PATCH', `/v1/roles/${role_id}`, { permissions: ['account:read'] }));
        return { token, channel: `events:${account_id}`, end };
      },
    ],
    [
      'the role of a member',
      403,
      'goes on',
      async () => {
        const { token, demote } = await administrator();
        return { token, path: '/v1/tokens', end: () => demote() };
      },
    ],
    [
      'the role of a member, while its read model is held up for longer than other answers wait',
      403,
      'goes on',
      async () => {
        const { boss, token, demote } = await administrator();
        const end = async () => {
          const holder = new pg.Client({ connectionString: here.database_url });
          await holder.connect();
          await holder.query('begin; lock table account_members in exclusive mode');
          holders.push(pause(WAIT_MS + 1000).then(() => holder.end()));
          await demote(new ApiClient(there.base_url, boss.access_token));
        };
        return { token, path: '/v1/tokens', there: true, end };
      },
    ],
    [
      'an admin role',
      403,
      'goes on',
      async () => {
        const { user_id, account_id } = await owner();
        const role = { name: `Support ${randomUUID()}`, permissions: ['users:read'] };
        const { id } = await done(root.send('POST', '/v1/admin/admin-roles', role));
        const path = `/v1/admin/admin-roles/${id}/members/${user_id}`;
        await done(root.send('PUT', path, {}));
        const { access_token: token } = await here.session(user_id, account_id);
        return { token, path: '/v1/admin/users', end: () => done(root.send('DELETE', path, undefined)) };
      },
    ],
    [
      'a session on an account that is dissolved',
      403,
      'UNAUTHORIZED',
      async () => {
        const { access_token: token, api, account_id, name } = await owner();
        const path = `/v1/accounts/${account_id}?confirm_name=${encodeURIComponent(name)}`;
        return { token, channel: `events:${account_id}`, end: () => done(api.send('DELETE', path, undefined)) };
      },
    ],
    [
      'a service key of an account that is dissolved',
      401,
      'cut',
      async () => {
        const { api, account_id, name } = await owner();
        const { key: token } = await done(api.send('POST', '/v1/service-keys', key));
        const path = `/v1/accounts/${account_id}?confirm_name=${encodeURIComponent(name)}`;
        return { token, end: () => done(api.send('DELETE', path, undefined)) };
      },
    ],
    ['what an OAuth client was given, with the client', 401, 'cut', oauth],
    [
      'a deleted user',
      401,
      'cut',
      async () => {
        const { access_token: token, user_id } = await member('moderator');
        return { token, end: () => done(root.send('DELETE', `/v1/admin/users/${user_id}`, undefined)) };
      },
    ],
    [
      'a feature of an account',
      403,
      'FEATURE_DISABLED',
      async () => {
        const { access_token: token, account_id } = await owner();
        const features = [{ key: 'feature:events', enabled: false }];
        const path = `/v1/admin/accounts/${account_id}/overrides`;
        return { token, channel: `events:${account_id}`, end: () => done(root.send('PATCH', path, { features })) };
      },
    ],
    [
      'a feature of everybody',
      403,
      'FEATURE_DISABLED',
      async () => {
        const { access_token: token, account_id } = await owner();
        const path = `/v1/admin/feature-flags/${EVENTS.id}`;
        return {
          token,
          channel: `events:${account_id}`,
          end: () => done(root.send('PATCH', path, { enabled: false })),
        };
      },
    ],
  ];

  // Others use the same server.
  afterAll(() => root?.send('PATCH', `/v1/admin/feature-flags/${EVENTS.id}`, { enabled: true }));

  test.each(CASES)('%s', async (_kind, after, socket, make) => {
    const { token, end, path = '/v1/events', headers = {}, channel = null, ws_token, ...how } = await make();
    const [near, far] = how.there ? [there, here] : [here, there];
    const { beside = false } = how;
    const asked = { 'x-forwarded-for': someAddress(), ...headers };
    const status = async (node: { base_url: string }) =>
      (await new ApiClient(node.base_url, token, asked).get(path)).status;
    for (const node of [here, there]) expect(await status(node)).toBe(beside ? 403 : 200);
    const listen = async (url: string, sent: Record<string, string>) => {
      const client = await Client.open(url, null, { headers: { 'x-forwarded-for': someAddress(), ...sent } });
      const subscribed = channel === null ? 'subscribed' : (await client.subscribe(channel)).type;
      expect(subscribed).toBe('subscribed');
      return client;
    };
    const bearer = { authorization: `Bearer ${token}`, ...headers };
    const upgrade = ws_token === undefined ? null : `${far.ws_url}?token=${ws_token}`;
    const sockets = await Promise.all([
      listen(near.ws_url, bearer),
      listen(far.ws_url, bearer),
      ...(upgrade === null ? [] : [listen(upgrade, {})]),
    ]);

    await end();
    const over = (node: { base_url: string }) =>
      promised(async () => (await status(node)) === after || undefined, 'its end', 1_000, probeOf(node));
    // Where the command was given, it holds for the next request.
    expect(await (beside ? over(near).then(() => after) : status(near))).toBe(after);
    await over(far);
    const told = async (client: Client) => {
      if (socket === 'goes on') return void (await client.ask({ type: 'ping' }, 'pong'));
      await client.until(
        () => (socket === 'cut' ? client.close_code === 4401 : client.messages.some(({ code }) => code === socket)),
        'the socket to be told',
      );
      if (socket !== 'cut') await client.ask({ type: 'ping' }, 'pong');
    };
    await inTime(Promise.all(sockets.map(told)), far);
    expect(upgrade === null ? 401 : (await refused(upgrade)).status).toBe(401);
    for (const client of sockets) client.end();
  });
});

const someAddress = () => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`;
