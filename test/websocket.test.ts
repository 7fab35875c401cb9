import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mintBoundToken } from '../access/bound-tokens';
import type { Caller, CallerKind } from '../access/caller';
import { createMemberPermissions } from '../access/memberships';
import { endSession, mintWsToken } from '../access/sessions';
import { CONTEXTS } from '../access/contexts';
import { createLocalPresence } from '../engines/presence/local';
import { SettingsSchema } from '../kernel/settings';
import { LIMITS } from '../realtime/runtime/limits';
import { account_id, ada, bob, credentialHouse, type CredentialHouse } from './support/credentials';
import { uuid } from './support/identity';
import { until } from './support/projections';
import {
  ACCOUNT,
  caller,
  Client,
  familiesWith,
  OTHER_ACCOUNT,
  publish,
  realtimeNode,
  type RealtimeNode,
  refused,
  type ServerMessage,
} from './support/realtime';
import { sharedServer } from './support/shared-server';

/** The checklist of spec doc3 §4.1, 6.3 and 6.4; a copy of `websocket.json` of the specification. */
const SPEC = JSON.parse(readFileSync(join(__dirname, 'fixtures/websocket.json'), 'utf8')) as Record<string, unknown>;

type Row = Record<string, any>;
type Proof = (row: Row) => Promise<void>;

/** Sections that are lists: by which member their rows are told apart. */
const LISTS: Readonly<Record<string, string>> = {
  upgrade: 'case',
  client_messages: 'type',
  server_messages: 'type',
  error_codes: 'code',
  error_rules: 'rule',
  gate_kinds: 'kind',
  channels: 'channel',
  heartbeat_and_limits: 'key',
  relay_rules: 'rule',
  relay_envelopes: 'internal_channel',
  chat_sub_types: 'data_type',
};
/** Notes about the rows, no rows. */
const NOTES = /_source$|^channel_table_rows|^relay_legacy_note$/;
/** What the client library does, which its own tests hold. */
const OF_CLIENTS = 'client_reconnect_guidance';

const EVENTS = `events:${ACCOUNT}`;
const INSTALL = '0190a000-0000-7000-8000-0000000000aa';
const nothing = { user_id: null, permissions: new Set<string>() };

let world: CredentialHouse;
/** Its credentials are made up by the test. */
let node: RealtimeNode;
/** Its credentials are real. */
let real: RealtimeNode;
const clients: Client[] = [];

beforeAll(async () => {
  world = await credentialHouse();
  const owned = async (id: string) => ({ account_id: ACCOUNT, bound: false, owned: id === INSTALL });
  // Kinds of gates that the specification has and none of its channels.
  const unused = { summary: 'Of this test.', carries: {}, flag: null };
  const families = [
    ...familiesWith({ 'ext-logs': owned }),
    { ...unused, pattern: 'test-authenticated:<id>', gate: { kind: 'authenticated' } as const },
    {
      ...unused,
      pattern: 'test-user-permission:<id>',
      gate: { kind: 'user_permission', permission: 'ideas:read' } as const,
    },
  ];
  const windows = { silence_ms: 30_000, stall_ms: 30_000, beat_ms: 100 };
  node = await realtimeNode(world.t, {
    windows,
    presence: createLocalPresence(),
    families,
    stream_snapshot: async (_platform, id) => (id === 'shown' ? { viewers: 7 } : null),
  });
  const resolver = world.resolver();
  real = await realtimeNode(world.t, {
    windows,
    resolve: resolver.resolve,
    again: resolver.again,
    permissions_on: createMemberPermissions({ db: world.t.db }).permissionsOn,
  });
});
afterEach(() => {
  for (const client of clients.splice(0)) client.end();
  node?.off.clear();
});
afterAll(async () => {
  await node?.stop();
  await real?.stop();
  await world?.close();
});

async function open(token: string | null = 'good', on = node, headers: Record<string, string> = {}): Promise<Client> {
  const client = await Client.open(on.url, token, { headers });
  clients.push(client);
  return client;
}
/** Somebody new of this make; answers their connection. */
async function as(given: Partial<Caller>): Promise<Client> {
  const token = `t${node.callers.size}`;
  node.callers.set(token, caller({ credential_id: token, ...given }));
  return open(token);
}
const anonymous = () => open(null);
const may = (...permissions: string[]) => as({ permissions: new Set(permissions) });
const verdict = async (client: Client, channel: string): Promise<string> => {
  const { type, code } = await client.subscribe(channel);
  return code ?? type;
};
const nextEvent = (client: Client, from = 0) => client.next(({ data }) => data !== undefined, 'an event', from);
const broadcastAs = (client: Client, channel: string, payload = '{"type":"x"}') =>
  client.ask({ type: 'broadcast', channel, payload }, 'error', 'event');

const services = () => ({
  db: world.t.db,
  tokens: world.tokens,
  settings: SettingsSchema.parse({}),
  events: world.on.events,
});
const bound = (kind: 'overlay' | 'shared_overlay' | 'extension' | 'widget', channel: string, expires_at?: number) =>
  mintBoundToken(world.t, {
    kind,
    account_id,
    resource_id: uuid(60),
    channel,
    expires_at: expires_at ?? (kind === 'shared_overlay' ? Date.now() + 600_000 : null),
  });
const byHeader = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

/** A client that reads nothing any more after it has subscribed. */
async function stalled(on: RealtimeNode, channel: string): Promise<Client> {
  const client = await open('good', on);
  await client.subscribe(channel);
  client.ws.pause();
  return client;
}
const big = (count: number) => Array.from({ length: count }, (_, n) => ({ n, pad: 'x'.repeat(20_000) }));

/** What the rows of the section say of a channel, proven on the gate that its family declares. */
const GATES: Record<string, (row: Row, name: string) => Promise<{ in: Client[]; out: Client[] }>> = {
  async OverlayToken(row, name) {
    const of = (kind: string, channel: string) =>
      as({ ...nothing, kind: kind.replace('_token', '') as CallerKind, bound_channel: channel });
    return {
      in: await Promise.all(row.contexts.map((kind: string) => of(kind, name))),
      out: await Promise.all([
        ...row.contexts.map((kind: string) => of(kind, `${name}2`)),
        as({ ...nothing, kind: row.gate === 'WidgetToken' ? 'overlay' : 'widget', bound_channel: name }),
        may('overlays:read', 'widgets:read'),
      ]),
    };
  },
  WidgetToken: (row, name) => GATES.OverlayToken!(row, name),
  async Permission({ permission }, name) {
    const of_install = name.startsWith('ext-storage:');
    const token = { ...nothing, kind: 'extension', bound_channel: name } as const;
    return {
      in: [
        of_install ? await as(token) : await may(permission),
        await as({ kind: 'system_key', account_id: null, permissions: new Set([permission.replace(/:.*/, ':*')]) }),
      ].slice(0, of_install ? 1 : 2),
      out: [
        await may('settings:read', permission.replace(/:.*/, ':other')),
        await as({ account_id: OTHER_ACCOUNT, permissions: new Set(of_install ? [] : [permission]) }),
        await as({ ...nothing, kind: 'widget', bound_channel: 'widget:w' }),
        await as({ ...token, bound_channel: `ext-storage:${ACCOUNT}` }),
      ],
    };
  },
  async AccountScoped(row, name) {
    const widget = { ...nothing, kind: 'widget', bound_channel: 'widget:mine' } as const;
    const overlay = { ...nothing, kind: 'overlay', bound_channel: 'overlay:k' } as const;
    const presence = row.channel.startsWith('presence:');
    return {
      in: [await as(presence ? widget : overlay), await as(widget), ...(presence ? [] : [await may()])],
      out: [
        await as({ ...widget, account_id: OTHER_ACCOUNT, bound_channel: `${name}2` }),
        await as({ ...overlay, account_id: OTHER_ACCOUNT }),
        await as({ account_id: OTHER_ACCOUNT }),
      ],
    };
  },
  async ExtensionOwner() {
    return { in: [await may()], out: [] };
  },
  async PublicWhenFeature() {
    return { in: [await anonymous(), await may()], out: [] };
  },
  async Public() {
    return { in: [await anonymous(), await may()], out: [] };
  },
};
const NAMED: Readonly<Record<string, string>> = {
  'overlay:<key>': 'overlay:k1',
  'widget:<widget_instance_id>': 'widget:w1',
  'ext-storage:<install_id>': `ext-storage:${INSTALL}`,
  'presence:<resource_channel>': 'presence:widget:mine',
  'ext-logs:<extension_id>': `ext-logs:${INSTALL}`,
  'ideas:list': 'ideas:list',
  'ideas:<idea_id>': `ideas:${INSTALL}`,
  'public-stats:<platform>:<broadcast_id>': 'public-stats:kick:99',
  'login-assignments:<id>': `login-assignments:${ACCOUNT}`,
};
const nameOf = (pattern: string): string => NAMED[pattern] ?? pattern.replace('<account_id>', ACCOUNT);

const channelRow: Proof = async (row) => {
  const name = nameOf(row.channel);
  const { in: passing, out } = await GATES[row.gate]!(row, name);
  for (const client of passing) expect([name, await verdict(client, name)]).toEqual([name, 'subscribed']);
  const refusing = row.gate.startsWith('Public') ? out : [...out, await anonymous()];
  for (const client of refusing) expect([name, await verdict(client, name)]).toEqual([name, 'UNAUTHORIZED']);

  const listener = passing[0]!;
  const from = listener.messages.length;
  await publish(world.t, node, name, [{ n: 1 }]);
  const got = await listener.next(({ id }) => id !== undefined, 'what is published', from);
  expect(got).toMatchObject({ channel: name, event_type: 'kick:follower', data: { n: 1 } });

  for (const flag of [row.feature, row.gate_flag].filter((one) => one !== undefined && one !== 'none')) {
    node.off.add(flag);
    const [allowed] = (await GATES[row.gate]!(row, name)).in;
    expect([flag, await verdict(allowed!, name)]).toEqual([flag, 'FEATURE_DISABLED']);
    node.off.clear();
  }

  const writer = await may(...(row.write_permission ? [row.write_permission] : ['events:create', 'chat:write']));
  if (row.write_permission === undefined) {
    expect((await broadcastAs(writer, name)).code).toBe('UNAUTHORIZED');
    return;
  }
  expect((await broadcastAs(await may(row.permission), name)).code).toBe('UNAUTHORIZED');
  const before = listener.messages.length;
  writer.send({ type: 'broadcast', channel: name, payload: '{"type":"raffle","n":3}' });
  expect(await nextEvent(listener, before)).toEqual({
    type: 'event',
    channel: name,
    event_type: 'raffle',
    data: { type: 'raffle', n: 3 },
  });
};

/** A stored message of the family in the envelope of the row; `channel` and `event_type` always (rulings c31, c32). */
const envelopeRow: Proof = async (row) => {
  const name = nameOf(row.internal_channel);
  const gate = (SPEC.channels as Row[]).find(({ channel }) => channel === row.internal_channel)!;
  const [client] = (await GATES[gate.gate]!(gate, name)).in;
  expect(await verdict(client!, nameOf(row.delivered_on.replace('widget:<id>', 'widget:<widget_instance_id>')))).toBe(
    'subscribed',
  );
  const [, type] = /type: '([^']+)'/.exec(row.envelope)!;
  const event_type = row.event_type?.[0] ?? row.event_type_default ?? row.event_type_examples?.[0] ?? 'kick:follower';
  const data = { type: 'kick:follower', event_type: 'own', payload: { username: 'ada' }, n: 1 };
  await publish(world.t, node, name, [data], event_type);
  const { id, ...sent } = await nextEvent(client!);
  expect(id).toMatch(/^[0-9a-f]{12}-\d+$/);
  // Exactly what was published, whatever members it has.
  expect(sent).toEqual({ type, channel: name, event_type, data });
};

const chatRow: Proof = async ({ data_type, payload }) => {
  const client = await may('chat:read');
  const channel = `chat:${ACCOUNT}`;
  await client.subscribe(channel);
  const type = data_type.startsWith('absent') ? undefined : data_type;
  const data = { n: 1, payload, ...(type && { type }) };
  await publish(world.t, node, channel, [data], type ?? 'chat:message');
  const sent = await nextEvent(client);
  expect(sent).toMatchObject({ type: 'chat:message', channel });
  expect(sent.data).toEqual(data);
};

/** The message types of families are as the row says, with `channel` and `event_type` beside (rulings c31, c32). */
async function serverMessage({ type, fields }: Row, channel: string, permission: string): Promise<void> {
  const client = await may(permission);
  await client.subscribe(channel);
  await publish(world.t, node, channel, [{ n: 1 }]);
  const sent: ServerMessage = await nextEvent(client);
  expect(sent.type).toBe(type);
  expect(Object.keys(sent)).toEqual(expect.arrayContaining([...fields, 'channel', 'event_type']));
}

/** The error, and the session goes on. */
async function tooLarge(bytes = LIMITS.frame_bytes): Promise<void> {
  const client = await open();
  const padded = (length: number) => {
    const empty = JSON.stringify({ type: 'ping', pad: '' });
    return JSON.stringify({ type: 'ping', pad: 'x'.repeat(length - empty.length) });
  };
  client.send(padded(bytes));
  await client.next(({ type }) => type === 'pong', 'the answer to exactly as much');
  client.send(padded(bytes + 1));
  await client.next(({ code }) => code === 'MESSAGE_TOO_LARGE', 'the error');
  await client.ask({ type: 'ping' }, 'pong');
}

const PROOFS: Record<string, Record<string, Proof>> = {
  address: {
    async address({ path, rule }) {
      expect(path).toBe('GET /v1/ws');
      expect(rule).toContain('snake_case');
      expect(new URL(node.url).pathname).toBe('/v1/ws');
      const client = await open();
      client.send({ type: 'ping' });
      await client.next(({ type }) => type === 'pong', 'the pong');
      for (const message of client.messages)
        for (const member of Object.keys(message)) expect(member).toMatch(/^[a-z_]+$/);
    },
  },

  upgrade: {
    async 'no token (no header and no `?token=`)'() {
      const client = await open(null, real);
      expect(await verdict(client, 'login-assignments:' + account_id)).toBe('subscribed');
      // Ruling c27: the anonymous are refused on overlay and widget channels.
      for (const channel of ['overlay:k', 'widget:w']) expect(await verdict(client, channel)).toBe('UNAUTHORIZED');
    },
    async 'a credential presented but failing validation (expired or bad-signature JWT, refresh or legacy JWT, or a JWT whose session was revoked)'(
      row,
    ) {
      const stale = await world.sessions.open(ada, account_id, Date.now() - 3_600_000);
      const revoked = await world.sessions.open(ada, account_id);
      await endSession(
        world.sessions.act,
        { ...services(), access: { announce: async () => undefined } },
        revoked.session_id,
        'logout',
      );
      const living = await world.sessions.open(ada, account_id);
      const [header, payload, signature] = living.access.token.split('.') as [string, string, string];
      const ended = await bound('shared_overlay', 'overlay:k', Date.now() - 1_000);
      const { token: forgotten } = await bound('widget', 'widget:w');
      await world.t.db.query('delete from bound_tokens where expires_at is null');
      const failing: [string, string][] = [
        [stale.access.token, 'TOKEN_EXPIRED'],
        [`${header}.${payload}.${signature.slice(0, -4)}AAAA`, 'UNAUTHORIZED'],
        [living.refresh.token, 'UNAUTHORIZED'],
        [living.access.token.replace(/^lm_/, ''), 'UNAUTHORIZED'],
        [revoked.access.token, 'UNAUTHORIZED'],
        // Ruling c36: any credential that fails, not JWTs alone.
        [ended.token, 'TOKEN_EXPIRED'],
        [forgotten, 'UNAUTHORIZED'],
        [`lm_svc_${'0'.repeat(64)}`, 'UNAUTHORIZED'],
        ['nonsense', 'UNAUTHORIZED'],
      ];
      const { sessions } = real.realtime.stats();
      for (const [token, error] of failing) {
        for (const answer of [await refused(real.url, byHeader(token)), await refused(`${real.url}?token=${token}`)]) {
          expect(answer.status).toBe(row.status);
          expect([token.slice(0, 8), answer.body]).toEqual([token.slice(0, 8), { error, message: expect.any(String) }]);
        }
      }
      expect(real.realtime.stats().sessions).toBe(sessions);
      expect((row.codes as Row[]).map(({ code }) => code)).toEqual(['TOKEN_EXPIRED', 'UNAUTHORIZED']);
    },
    async 'accepted tokens and transports'() {
      const { access } = await world.sessions.open(ada, account_id);
      const each = [...(await world.oneOfEach()), { kind: 'jwt' as const, token: access.token }];
      expect(new Set(each.map(({ kind }) => kind)).size).toBe(Object.keys(CONTEXTS).length - 1);
      for (const { kind, token } of each) {
        (await open(null, real, byHeader(token).headers)).end();
        // Keys count in the header alone; presented elsewhere they are a credential that fails.
        if (!kind.endsWith('_key')) (await open(token, real)).end();
        else expect((await refused(`${real.url}?token=${token}`)).body.error).toBe('UNAUTHORIZED');
      }
      // A header with a recognised prefix is final.
      const overlay = await bound('overlay', 'overlay:final');
      const wrong = { headers: { authorization: `Bearer lm_svc_${'0'.repeat(64)}` } };
      expect((await refused(`${real.url}?token=${overlay.token}`, wrong)).status).toBe(401);
    },
    async 'dashboard and popout pages'() {
      const { session_id } = await world.sessions.open(bob, account_id);
      const popout = (await world.oneOfEach()).find(({ kind }) => kind === 'popout')!;
      const from = [
        { kind: 'jwt', credential_id: session_id },
        { kind: 'popout', credential_id: popout.id },
      ] as const;
      for (const parent of from) {
        const { token } = await mintWsToken(services(), { ...parent, account_id, user_id: bob }, Date.now());
        const client = await open(token, real);
        const expected = parent.kind === 'jwt' ? 'subscribed' : 'UNAUTHORIZED';
        // Bob's role reads events, what the popout token was given does not; it reads the chat as far as Bob may.
        expect(await verdict(client, `events:${account_id}`)).toBe(expected);
      }
    },
    async 'JWT `exp` during the connection'() {
      const client = await as({ expires_at: Date.now() + 400 });
      expect(await client.closed()).toBe(4401);
      expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'TOKEN_EXPIRED' });
    },
  },

  client_messages: {
    async subscribe() {
      const client = await open();
      const first = await client.subscribe(EVENTS);
      expect(first).toMatchObject({ type: 'subscribed', channel: EVENTS });
      expect(await client.subscribe(EVENTS)).toEqual(first);
      await publish(world.t, node, EVENTS, [{ n: 1 }]);
      await nextEvent(client);
      await client.ask({ type: 'ping' }, 'pong');
      expect(client.events(EVENTS)).toHaveLength(1);
      expect(await client.subscribe(`events:${OTHER_ACCOUNT}`)).toMatchObject({ type: 'error' });
    },
    async unsubscribe() {
      const [client, witness] = [await open(), await open()];
      for (const one of [client, witness]) await one.subscribe(EVENTS);
      const message = { type: 'unsubscribe', channel: EVENTS };
      expect(await client.ask(message, 'unsubscribed')).toEqual({ type: 'unsubscribed', channel: EVENTS });
      await publish(world.t, node, EVENTS, [{ n: 1 }]);
      await nextEvent(witness);
      await client.ask({ type: 'ping' }, 'pong');
      expect(client.events(EVENTS)).toEqual([]);
    },
    async broadcast({ write_permissions, forwarded_as }) {
      expect(forwarded_as).toBe("{type: 'event', data: <payload>}");
      for (const [family, permission] of Object.entries(write_permissions as Record<string, string>)) {
        const channel = `${family}:${ACCOUNT}`;
        const [listener, writer] = [await may(`${family}:read`), await may(permission)];
        await listener.subscribe(channel);
        writer.send({ type: 'broadcast', channel, payload: '{"n":1}' });
        expect(await nextEvent(listener)).toEqual({ type: 'event', channel, event_type: 'broadcast', data: { n: 1 } });
        expect((await broadcastAs(writer, channel, '{')).code).toBe('INVALID_FORMAT');
        expect((await broadcastAs(listener, channel)).code).toBe('UNAUTHORIZED');
        expect((await broadcastAs(await anonymous(), channel)).code).toBe('UNAUTHORIZED');
      }
    },
    async ping() {
      expect(await (await open()).ask({ type: 'ping' }, 'pong')).toEqual({ type: 'pong' });
    },
  },

  server_messages: {
    async welcome() {
      const client = await open();
      await client.ask({ type: 'ping' }, 'pong');
      const of = client.messages.filter(({ type }) => type === 'welcome');
      expect(of).toEqual([{ type: 'welcome', session_id: expect.any(String), server_version: '1.2.3' }]);
      expect(client.messages[0]).toBe(of[0]);
    },
    async subscribed() {
      expect(await (await open()).subscribe(EVENTS)).toMatchObject({ type: 'subscribed', channel: EVENTS });
    },
    async unsubscribed() {
      const answer = await (await open()).ask({ type: 'unsubscribe', channel: EVENTS }, 'unsubscribed');
      expect(answer).toEqual({ type: 'unsubscribed', channel: EVENTS });
    },
    async pong() {
      expect(await (await open()).ask({ type: 'ping' }, 'pong')).toEqual({ type: 'pong' });
    },
    async error() {
      const client = await open();
      client.send('{');
      const error = await client.next(({ type }) => type === 'error', 'the error');
      expect(error).toEqual({ type: 'error', message: expect.any(String), code: 'INVALID_FORMAT' });
    },
    event: (row) => serverMessage(row, EVENTS, 'events:read'),
    'spotify:now-playing': (row) => serverMessage(row, `spotify:${ACCOUNT}`, 'spotify:read'),
    'chat:message': (row) => serverMessage(row, `chat:${ACCOUNT}`, 'chat:read'),
    automation: (row) => serverMessage(row, `automations:${ACCOUNT}`, 'automations:read'),
  },

  error_codes: {
    async UNAUTHORIZED() {
      const client = await open();
      const stranger = await as({ account_id: OTHER_ACCOUNT });
      expect(await verdict(client, `history:${ACCOUNT}`)).toBe('UNAUTHORIZED');
      for (const one of [stranger, await anonymous()])
        expect(await verdict(one, `presence:${EVENTS}`)).toBe('UNAUTHORIZED');
      expect(await verdict(client, 'presence:widget:nowhere')).toBe('UNAUTHORIZED');
    },
    async FEATURE_DISABLED() {
      node.off.add('feature:events');
      expect(await verdict(await open(), EVENTS)).toBe('FEATURE_DISABLED');
      expect(await verdict(await as({ account_id: OTHER_ACCOUNT }), EVENTS)).toBe('UNAUTHORIZED');
    },
    async TOKEN_REVOKED() {
      for (const kind of ['overlay', 'shared_overlay'] as const) {
        const { id, token } = await bound(kind, 'overlay:gone');
        const client = await open(token, real);
        expect(await verdict(client, 'overlay:gone')).toBe('subscribed');
        await world.t.db.query('delete from bound_tokens where id = $1', [id]);
        expect(await client.closed()).toBe(4401);
        expect(client.close_reason).toBe('TOKEN_REVOKED');
        expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'TOKEN_REVOKED' });
      }
    },
    async TOKEN_EXPIRED() {
      const { token } = await bound('shared_overlay', 'overlay:brief', Date.now() + 700);
      const client = await open(token, real);
      expect(await client.closed()).toBe(4401);
      expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'TOKEN_EXPIRED' });
    },
    async SUBSCRIBE_FAILED() {
      const away = () => Promise.reject(new Error('no database'));
      const broken = await realtimeNode(world.t, { features: { enabled: away } });
      expect(await verdict(await open('good', broken), EVENTS)).toBe('SUBSCRIBE_FAILED');
      await broken.stop();
    },
    async CHANNEL_DROPPED({ closes_session }) {
      const slow = await stalled(node, EVENTS);
      await publish(world.t, node, EVENTS, big(900));
      await until(async () => /channels_dropped_total [1-9]/.test(await node.metrics()));
      slow.ws.resume();
      await slow.next(({ code }) => code === 'CHANNEL_DROPPED', 'the error');
      expect(closes_session).toBe(false);
      expect(await verdict(slow, EVENTS)).toBe('subscribed');
    },
    async INVALID_FORMAT() {
      const client = await open();
      for (const text of ['{', '{"type":"shout"}', '{"type":"subscribe"}', '[]']) {
        const from = client.messages.length;
        client.send(text);
        expect((await client.next(({ type }) => type === 'error', 'the error', from)).code).toBe('INVALID_FORMAT');
      }
    },
    MESSAGE_TOO_LARGE: () => tooLarge(),
  },

  error_rules: {
    async 'A failed permission subscribe yields `error` with `code: UNAUTHORIZED` and the channel is not registered.'() {
      const [client, witness] = [await may('chat:read'), await open()];
      expect(await verdict(client, EVENTS)).toBe('UNAUTHORIZED');
      await witness.subscribe(EVENTS);
      await publish(world.t, node, EVENTS, [{ n: 1 }]);
      await nextEvent(witness);
      await client.ask({ type: 'ping' }, 'pong');
      expect(client.events(EVENTS)).toEqual([]);
    },
    'Frames over 64 KiB are rejected with `MESSAGE_TOO_LARGE`.': () => tooLarge(),
  },

  gate_kinds: {
    async Public() {
      expect(await verdict(await anonymous(), `login-assignments:${ACCOUNT}`)).toBe('subscribed');
    },
    async PublicWhenFeature() {
      expect(await verdict(await anonymous(), 'ideas:list')).toBe('subscribed');
      node.off.add('system:ideas_hub_public');
      expect(await verdict(await anonymous(), 'ideas:list')).toBe('FEATURE_DISABLED');
    },
    async Authenticated() {
      expect(await verdict(await may(), 'test-authenticated:x')).toBe('subscribed');
      expect(await verdict(await anonymous(), 'test-authenticated:x')).toBe('UNAUTHORIZED');
    },
    async Permission() {
      expect(await verdict(await may('events:read'), EVENTS)).toBe('subscribed');
      expect(await verdict(await may('events:read'), `events:${OTHER_ACCOUNT}`)).toBe('UNAUTHORIZED');
    },
    async AccountScoped() {
      expect(await verdict(await may(), `sounds:${ACCOUNT}`)).toBe('subscribed');
      expect(await verdict(await may('sounds:read'), `sounds:${OTHER_ACCOUNT}`)).toBe('UNAUTHORIZED');
    },
    async UserPermission() {
      const reader = await as({ user_permissions: new Set(['ideas:read']) });
      expect(await verdict(reader, 'test-user-permission:x')).toBe('subscribed');
      // Scopes never mix: an account's permission of that name opens nothing.
      for (const client of [await may('ideas:read'), await anonymous()])
        expect(await verdict(client, 'test-user-permission:x')).toBe('UNAUTHORIZED');
    },
    async OverlayToken() {
      const token = { ...nothing, kind: 'overlay', bound_channel: 'overlay:a' } as const;
      expect(await verdict(await as(token), 'overlay:a')).toBe('subscribed');
      expect(await verdict(await as(token), 'overlay:b')).toBe('UNAUTHORIZED');
    },
    async WidgetToken() {
      const token = { ...nothing, kind: 'widget', bound_channel: 'widget:a' } as const;
      expect(await verdict(await as(token), 'widget:a')).toBe('subscribed');
      expect(await verdict(await as({ ...token, kind: 'overlay' }), 'widget:a')).toBe('UNAUTHORIZED');
    },
    async ExtensionOwner() {
      expect(await verdict(await may(), `ext-logs:${INSTALL}`)).toBe('subscribed');
      expect(await verdict(await may(), `ext-logs:${ACCOUNT}`)).toBe('UNAUTHORIZED');
    },
    async Unknown() {
      const all = await as({ kind: 'system_key', permissions: new Set(['*:*', 'ext:*', 'events:*']) });
      for (const channel of [`ext:${INSTALL}`, 'nothing:there', 'events', '', `Events:${ACCOUNT}`])
        expect(await verdict(all, channel)).toBe('UNAUTHORIZED');
    },
  },

  channels: Object.fromEntries((SPEC.channels as Row[]).map(({ channel }) => [channel, channelRow])),

  heartbeat_and_limits: {
    async silence_timeout_seconds({ value }) {
      expect(value).toBe(30);
      const brief = await realtimeNode(world.t, { windows: { silence_ms: 600, stall_ms: 30_000, beat_ms: 100 } });
      const [silent, talking, control] = [
        await open('good', brief),
        await open('good', brief),
        await open('good', brief),
      ];
      let pings = 0;
      silent.ws.on('ping', () => (pings += 1));
      const timer = setInterval(() => {
        talking.send({ type: 'ping' });
        control.ws.ping('still here');
      }, 100);
      const answered = new Promise<string>((pong) => control.ws.once('pong', (data: Buffer) => pong(data.toString())));
      expect(await silent.closed()).toBe(4408);
      expect([pings, await answered]).toEqual([0, 'still here']);
      for (const client of [talking, control]) await client.ask({ type: 'ping' }, 'pong');
      clearInterval(timer);
      await brief.stop();
    },
    async heartbeat_tick_seconds({ value }) {
      expect([LIMITS.heartbeat_ms, LIMITS.silence_ms]).toEqual([value * 1_000, 6 * value * 1_000]);
    },
    async outbound_send_window_seconds({ value }) {
      expect(LIMITS.stall_ms).toBe(value * 1_000);
      const brief = await realtimeNode(world.t, { windows: { silence_ms: 30_000, stall_ms: 500, beat_ms: 100 } });
      await stalled(brief, EVENTS);
      await publish(world.t, brief, EVENTS, big(900));
      await until(() => brief.realtime.stats().sessions === 0);
      await brief.stop();
    },
    async outbound_queue_messages({ value }) {
      expect(LIMITS.queue_messages).toBe(value);
    },
    max_text_frame_bytes: ({ value }) => tooLarge(value),
    async token_revalidation_db_seconds({ value }) {
      expect(LIMITS.revalidate_ms).toBe(value * 1_000);
      // Nobody tells of it: the database alone knows.
      const { id, token } = await bound('shared_overlay', 'overlay:quiet');
      const client = await open(token, real);
      await world.t.db.query('delete from bound_tokens where id = $1', [id]);
      expect(await client.closed()).toBe(4401);
    },
    async expiry_check_seconds() {
      const client = await as({ kind: 'shared_overlay', expires_at: Date.now() + 300 });
      const opened_at = performance.now();
      expect(await client.closed()).toBe(4401);
      expect(performance.now() - opened_at).toBeLessThan(2_000);
    },
  },

  presence: {
    async presence({ events }) {
      const name = 'presence:widget:mine';
      const token = { ...nothing, kind: 'widget', bound_channel: 'widget:mine' } as const;
      const [first, second] = [await as({ ...token, user_id: uuid(70) }), await as(token)];
      for (const client of [first, second]) {
        expect(await verdict(client, name)).toBe('subscribed');
        await client.next(({ event_type }) => event_type === 'presence:bootstrap', 'the list');
      }
      const { data } = await second.next(({ event_type }) => event_type === 'presence:bootstrap', 'the list');
      const there = data!.connections as unknown as Row[];
      expect(there).toHaveLength(2);
      for (const one of there) {
        expect(Object.keys(one).sort()).toEqual(['account_id', 'avatar', 'connection_id', 'display_name', 'user_id']);
      }
      second.end();
      for (const event_type of events as string[])
        expect(await first.next((message) => message.event_type === event_type, event_type)).toMatchObject({
          type: 'event',
          channel: name,
          data: { account_id: ACCOUNT },
        });
    },
  },

  public_stats_channel: {
    async public_stats_channel({ clients_publish }) {
      const client = await anonymous();
      for (const id of ['unknown', 'shown']) await client.subscribe(`public-stats:kick:${id}`);
      expect(await nextEvent(client)).toMatchObject({ channel: 'public-stats:kick:shown', data: { viewers: 7 } });
      expect(client.messages.filter(({ type }) => type === 'event')).toHaveLength(1);
      expect(clients_publish).toBe(false);
      expect((await broadcastAs(await may('public-stats:edit'), 'public-stats:kick:shown')).code).toBe('UNAUTHORIZED');
    },
  },

  observability: {
    async observability() {
      const server = await sharedServer();
      const read = async () =>
        ((await (await fetch(`${server.base_url}/v1/health`)).json()) as Row).data.websocket as Row;
      const before = await read();
      const client = await Client.open(server.ws_url, null);
      clients.push(client);
      await client.subscribe(`login-assignments:${uuid(71)}`);
      const now = await read();
      expect(Object.keys(now).sort()).toEqual(['channels', 'sessions']);
      expect([now.sessions > before.sessions, now.channels > before.channels]).toEqual([true, true]);
    },
  },

  relay_rules: {
    async 'pub/sub to WebSocket, one way. Only these internal channel prefixes are relayed.'() {
      const client = await open();
      await publish(world.t, node, `ext:${INSTALL}`, [{ n: 1 }]);
      expect(await verdict(client, `ext:${INSTALL}`)).toBe('UNAUTHORIZED');
    },
    "For the four legacy families `data` is exactly what the publisher sent (including its own `type`, `event_type`, `payload`); for the others the relay lifts `event_type` out of the payload and forwards the payload's `data`.":
      async () => {
        for (const row of SPEC.relay_envelopes as Row[]) await envelopeRow(row);
      },
  },
  relay_envelopes: Object.fromEntries(
    (SPEC.relay_envelopes as Row[]).map(({ internal_channel }) => [internal_channel, envelopeRow]),
  ),
  relay_example: {
    async relay_example() {
      const client = await open();
      await client.subscribe(EVENTS);
      const data = { n: 0, type: 'twitch:follower', payload: { username: 'ada' } };
      await publish(world.t, node, EVENTS, [data], 'twitch:follower');
      expect(await nextEvent(client)).toMatchObject({ type: 'event', data });
    },
  },
  chat_sub_types: Object.fromEntries((SPEC.chat_sub_types as Row[]).map(({ data_type }) => [data_type, chatRow])),
  chat_dispatch_rule: {
    async chat_dispatch_rule() {
      for (const row of SPEC.chat_sub_types as Row[]) await chatRow(row);
    },
  },
};

const rowsOf = (section: string): [string, Row][] => {
  const rows = SPEC[section];
  const key = LISTS[section];
  if (key === undefined) return [[section, rows as Row]];
  return (rows as Row[]).map((row) => [row[key] as string, row]);
};
const SECTIONS = Object.keys(SPEC).filter((name) => !NOTES.test(name) && name !== OF_CLIENTS);

describe.each(SECTIONS)('websocket.json, %s', (section) => {
  test.each(rowsOf(section))('%s', async (name, row) => {
    const proof = PROOFS[section]?.[name];
    if (proof === undefined) throw new Error(`nothing proves ${section}: ${name}`);
    await expect(proof(row)).resolves.toBeUndefined();
  });
});

test('nothing is proven that the checklist does not have', () => {
  const proven = Object.entries(PROOFS).flatMap(([section, rows]) => Object.keys(rows).map((row) => [section, row]));
  const listed = SECTIONS.flatMap((section) => rowsOf(section).map(([row]) => [section, row]));
  expect(proven.sort()).toEqual(listed.sort());
});
