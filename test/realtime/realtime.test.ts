import type { Caller } from '../../access/authentication/caller';
import { createLocalRelay } from '../../engines/relay/local';
import { shardOf } from '../../lib/hash/shards';
import { testDatabase, type TestDatabase } from '../support/database';
import { keptLog } from '../support/log';
import { until } from '../support/projections';
import {
  ACCOUNT,
  caller,
  Client,
  OTHER_ACCOUNT,
  publish,
  realtimeNode,
  refused,
  UNCOUNTED,
  type RealtimeNode,
} from '../support/realtime';

const EVENTS = `events:${ACCOUNT}`;
let t: TestDatabase;
let node: RealtimeNode;

beforeAll(async () => {
  t = await testDatabase();
  node = await realtimeNode(t);
});
afterAll(async () => {
  await node?.stop();
  await t?.drop();
});

describe('the upgrade', () => {
  test('without a credential the caller is anonymous; with one, header and query both work', async () => {
    for (const [token, options] of [
      [null, {}],
      ['good', {}],
      [null, { headers: { authorization: 'Bearer good' } }],
    ] as const) {
      const client = await Client.open(node.url, token, options);
      expect(client.messages[0]).toEqual({
        type: 'welcome',
        session_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        server_version: '1.2.3',
      });
      client.end();
    }
  });

  test.each([
    ['expired', 'TOKEN_EXPIRED'],
    ['forged', 'UNAUTHORIZED'],
  ])('a failing credential (%s) is answered 401 before the switch', async (token, error) => {
    for (const answer of [
      await refused(`${node.url}?token=${token}`),
      await refused(node.url, { headers: { authorization: `Bearer ${token}` } }),
    ]) {
      expect(answer.status).toBe(401);
      expect(answer.body).toEqual({ error, message: expect.any(String) });
      expect(answer.headers['content-type']).toMatch(/^application\/json/);
      expect(answer.headers['www-authenticate']).toBe(
        `Bearer error="invalid_token", error_description="${answer.body.message}"`,
      );
    }
  });

  test('another site is refused, the same host and listed origins are not', async () => {
    expect((await refused(node.url, { headers: { origin: 'https://evil.example' } })).status).toBe(403);
    expect((await refused(node.url, { headers: { origin: 'null' } })).status).toBe(403);
    for (const origin of ['https://app.example', node.url.replace('ws:', 'http:').replace('/v1/ws', '')]) {
      (await Client.open(node.url, 'good', { headers: { origin } })).end();
    }
  });

  test('the host is compared with the origin by scheme, lower case and default port', async () => {
    const status = async (host: string, origin: string) =>
      (await refused(`${node.url}?token=forged`, { headers: { host, origin } })).status;
    for (const [host, origin] of [
      ['stage.example:443', 'https://stage.example'],
      ['STAGE.example', 'https://stage.example'],
      ['stage.example', 'HTTPS://STAGE.example:443'],
      ['stage.example:80', 'http://stage.example'],
      ['[2001:DB8::1]:443', 'https://[2001:db8::1]'],
    ] as const) {
      expect(await status(host, origin)).toBe(401);
    }
    for (const [host, origin] of [
      ['stage.example:443', 'http://stage.example'],
      ['stage.example:80', 'https://stage.example'],
      ['stage.example:8443', 'https://stage.example'],
      ['stage.example', 'https://evil.example/@stage.example'],
      ['', 'null'],
      ['null', 'null'],
    ] as const) {
      expect(await status(host, origin)).toBe(403);
    }
  });

  test('null and file:// are admitted by name, with a token in the query alone', async () => {
    const named = await realtimeNode(t, {
      settings: { allowed_origins: ['null', 'file://'], public_url: undefined, realtime: { resume_window: 1_000 } },
    });
    for (const origin of ['null', 'file://']) {
      (await Client.open(named.url, 'good', { headers: { origin } })).end();
      for (const url of [named.url, `${named.url}?token=`]) {
        expect((await refused(url, { headers: { origin, authorization: 'Bearer good' } })).status).toBe(403);
      }
    }
    for (const origin of [
      'https://evil.example',
      'capacitor://localhost',
      'file:///',
      'file://host',
      'data:',
      'NULL',
    ]) {
      expect((await refused(`${named.url}?token=good`, { headers: { origin } })).status).toBe(403);
    }
    await named.stop();
  });

  test('other paths and too many headers are refused', async () => {
    expect((await refused(node.url.replace('/v1/ws', '/v1/other'))).status).toBe(404);
    const headers = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`x-${i}`, 'y']));
    expect((await refused(node.url, { headers })).status).toBe(431);
  });

  test('a bucket that is empty answers 429 with the time to wait', async () => {
    const limited = await realtimeNode(t, { counts: { ...UNCOUNTED, wait: async () => 7 } });
    const answer = await refused(`${limited.url}?token=good`);
    expect([answer.status, answer.body.error, answer.headers['retry-after']]).toEqual([
      429,
      'RATE_LIMIT_EXCEEDED',
      '7',
    ]);
    await limited.stop();
  });

  test('a refusal costs its network a unit, whatever was wrong; without one left it is 429', async () => {
    const buckets: string[] = [];
    let wait: number | null = null;
    const own = await realtimeNode(t, {
      counts: {
        ...UNCOUNTED,
        async wait({ rate_bucket }) {
          buckets.push(rate_bucket);
          return wait;
        },
      },
    });
    const statuses = async () => {
      const seen: number[] = [];
      for (const [url, headers] of [
        [`${own.url}?token=forged`, {}],
        [own.url.replace('/v1/ws', '/v1/other'), {}],
        [own.url, { origin: 'https://evil.example' }],
      ] as const) {
        seen.push((await refused(url, { headers })).status);
      }
      return seen;
    };
    expect(await statuses()).toEqual([401, 404, 403]);
    wait = 7;
    expect(await statuses()).toEqual([429, 429, 429]);
    expect(buckets).toEqual(Array(6).fill('failed:127.0.0.1'));
    await own.stop();
  });

  test('a database that cannot say who it is answers 503', async () => {
    const broken = await realtimeNode(t, { resolve: () => Promise.reject(new Error('no database')) });
    expect((await refused(`${broken.url}?token=good`)).status).toBe(503);
    await broken.stop();
  });

  test('a crowd that comes while the database is unavailable is a line of the log, a mistake of ours is one each', async () => {
    const log = keptLog();
    let error: Error = Object.assign(new Error('stopping'), { code: '57P01', severity: 'FATAL' });
    const broken = await realtimeNode(t, { log, resolve: () => Promise.reject(error) });
    const knock = async () => expect((await refused(broken.url)).status).toBe(503);
    for (const _ of [1, 2, 3]) await knock();
    error = new TypeError('x');
    for (const _ of [1, 2]) await knock();
    const unchecked = 'an upgrade could not be checked';
    expect(log.lines.filter(({ level }) => level !== 'debug')).toMatchObject([
      { level: 'warn', facts: { cause: 'database', state: 'begun', by: { [unchecked]: 1 } } },
      ...[1, 2].map(() => ({ level: 'error', facts: { err: error }, message: unchecked })),
    ]);
    await broken.stop();
  });
});

describe('messages', () => {
  test('ping, subscribe, its repeat, an event, unsubscribe', async () => {
    const client = await Client.open(node.url);
    expect(await client.ask({ type: 'ping' }, 'pong')).toEqual({ type: 'pong' });
    const first = await client.subscribe(EVENTS);
    expect(first).toEqual({ type: 'subscribed', channel: EVENTS, id: expect.stringMatching(/^[0-9a-f]{12}-\d+$/) });
    expect(await client.subscribe(EVENTS)).toEqual(first);
    await publish(t, node, EVENTS, [{ big: 1 }]);
    const event = await client.next((message) => message.type === 'event', 'the event');
    const [epoch, seq] = first.id!.split('-');
    expect(event).toEqual({
      type: 'event',
      id: `${epoch}-${Number(seq) + 1}`,
      channel: EVENTS,
      event_type: 'kick:follower',
      data: { big: 1 },
    });
    expect(await client.ask({ type: 'unsubscribe', channel: EVENTS }, 'unsubscribed')).toEqual({
      type: 'unsubscribed',
      channel: EVENTS,
    });
    await publish(t, node, EVENTS, [{ big: 2 }]);
    const witness = await Client.open(node.url);
    const head = (await witness.subscribe(EVENTS)).id!;
    await publish(t, node, EVENTS, [{ big: 3 }]);
    await witness.next((message) => message.data?.big === 3, 'the third');
    expect(head).toMatch(/-\d+$/);
    await client.ask({ type: 'ping' }, 'pong');
    expect(client.events(EVENTS)).toEqual([{ big: 1 }]);
    client.end();
    witness.end();
  });

  test('stored data is sent as it was stored, byte for byte', async () => {
    const client = await Client.open(node.url);
    await client.subscribe(EVENTS);
    const frames: string[] = [];
    client.ws.on('message', (data) => frames.push(data.toString()));
    await t.db.query('select outbox_write($1, $2, $3)', [
      [EVENTS],
      ['shopify:order'],
      ['{"id":820982911946154508, "ä":"\\u00e4😀"}'],
    ]);
    node.wakeups.notify('outbox');
    await client.next((message) => message.event_type === 'shopify:order', 'the order');
    expect(frames.at(-1)).toContain('"data":{"id":820982911946154508, "ä":"\\u00e4😀"}}');
    client.end();
  });

  test.each([
    [`chat:${ACCOUNT}`, 'chat:message'],
    [`automations:${ACCOUNT}`, 'automation'],
    [EVENTS, 'event'],
  ])('%s carries type %s', async (channel, type) => {
    const client = await Client.open(node.url);
    await client.subscribe(channel);
    await publish(t, node, channel, [{ n: 1 }]);
    expect(await client.next((message) => message.data !== undefined, 'the message')).toMatchObject({
      type,
      channel,
      event_type: 'kick:follower',
      data: { n: 1 },
    });
    client.end();
  });

  test.each([
    '',
    '{',
    '[]',
    'null',
    '"ping"',
    '{"type":"nope"}',
    '{"type":"subscribe"}',
    '{"type":"subscribe","channel":5}',
    '{"type":"subscribe","channel":"a:b","since":5}',
    '{"type":"broadcast","channel":"a:b"}',
  ])('INVALID_FORMAT for %s, and the session stays', async (text) => {
    const client = await Client.open(node.url);
    client.send(text);
    expect(await client.next((message) => message.type === 'error', 'the error')).toMatchObject({
      code: 'INVALID_FORMAT',
      message: expect.any(String),
    });
    await client.ask({ type: 'ping' }, 'pong');
    client.end();
  });

  test('binary frames are INVALID_FORMAT, frames over 64 KiB MESSAGE_TOO_LARGE; the session stays', async () => {
    const client = await Client.open(node.url);
    client.ws.send(Buffer.from('{"type":"ping"}'));
    expect((await client.next((message) => message.type === 'error', 'the error')).code).toBe('INVALID_FORMAT');
    const exact = JSON.stringify({ type: 'ping', pad: '' });
    client.send(JSON.stringify({ type: 'ping', pad: 'x'.repeat(65_536 - exact.length) }));
    await client.next((message) => message.type === 'pong', 'the pong to exactly 64 KiB');
    client.send(JSON.stringify({ type: 'ping', pad: 'x'.repeat(65_537 - exact.length) }));
    expect((await client.next((message) => message.code === 'MESSAGE_TOO_LARGE', 'the error')).type).toBe('error');
    await client.ask({ type: 'ping' }, 'pong');
    client.end();
  });

  test('absurd sizes and tiny fragments close with 1009, after the error', async () => {
    const big = await Client.open(node.url);
    big.send('x'.repeat(300 * 1024));
    expect(await big.closed()).toBe(1009);
    expect(big.messages.at(-1)).toMatchObject({ type: 'error', code: 'MESSAGE_TOO_LARGE' });
    const tiny = await Client.open(node.url);
    for (let i = 0; i < 400; i += 1) tiny.ws.send('x', { fin: false });
    expect(await tiny.closed()).toBe(1009);
    await (await Client.open(node.url)).ask({ type: 'ping' }, 'pong');
  });

  test('fragments of one message are joined; Ping control frames are answered', async () => {
    const client = await Client.open(node.url);
    client.ws.send('{"type":', { fin: false });
    client.ws.send('"ping"}', { fin: true });
    await client.next((message) => message.type === 'pong', 'pong');
    const answered = new Promise<string>((resolve) => client.ws.once('pong', (data) => resolve(data.toString())));
    client.ws.ping('are you there');
    expect(await answered).toBe('are you there');
    client.end();
  });
});

describe('gates', () => {
  const install = '0190a000-0000-7000-8000-0000000000aa';
  test.each([
    [`events:${OTHER_ACCOUNT}`],
    [`history:${ACCOUNT}`],
    ['nothing:here'],
    ['events:'],
    ['events'],
    [`events:${ACCOUNT}x`],
    ['x'.repeat(10_000)],
    [`overlay:key`],
    [`widget:id`],
    [`ext-storage:${install}`],
    [`presence:widget:1`],
    [`sounds:${OTHER_ACCOUNT}`],
  ])('UNAUTHORIZED on %s', async (channel) => {
    const client = await Client.open(node.url);
    expect(await client.subscribe(channel)).toMatchObject({ type: 'error', code: 'UNAUTHORIZED' });
    client.end();
  });

  test('the anonymous get public channels and nothing else', async () => {
    const client = await Client.open(node.url, null);
    for (const channel of [EVENTS, 'overlay:k', 'widget:w', `sounds:${ACCOUNT}`, 'presence:widget:1']) {
      expect(await client.subscribe(channel)).toMatchObject({ type: 'error', code: 'UNAUTHORIZED', channel });
    }
    for (const channel of [`login-assignments:${ACCOUNT}`, 'ideas:list', `ideas:${install}`, 'public-stats:kick:99']) {
      expect(await client.subscribe(channel)).toMatchObject({ type: 'subscribed', channel });
    }
    client.end();
  });

  test('FEATURE_DISABLED only for those who are authorized', async () => {
    node.off.add('feature:events').add('system:public_stats').add('system:ideas_hub_public');
    const client = await Client.open(node.url);
    expect(await client.subscribe(EVENTS)).toMatchObject({ type: 'error', code: 'FEATURE_DISABLED' });
    expect(await client.subscribe(`events:${OTHER_ACCOUNT}`)).toMatchObject({ code: 'UNAUTHORIZED' });
    expect(await client.subscribe('public-stats:kick:99')).toMatchObject({ code: 'FEATURE_DISABLED' });
    expect(await client.subscribe('ideas:list')).toMatchObject({ code: 'FEATURE_DISABLED' });
    expect(await client.ask({ type: 'broadcast', channel: EVENTS, payload: '{}' }, 'error')).toMatchObject({
      code: 'FEATURE_DISABLED',
    });
    node.off.clear();
    client.end();
  });

  test('a system key goes by its grants on any account', async () => {
    node.callers.set('system', caller({ kind: 'system_key', account_id: null, permissions: new Set(['events:*']) }));
    const client = await Client.open(node.url, null, { headers: { authorization: 'Bearer system' } });
    expect(await client.subscribe(`events:${OTHER_ACCOUNT}`)).toMatchObject({ type: 'subscribed' });
    expect(await client.subscribe(`chat:${OTHER_ACCOUNT}`)).toMatchObject({ code: 'UNAUTHORIZED' });
    client.end();
  });

  test('bound tokens reach their own resource; c16 for extensions', async () => {
    const NOTHING = { user_id: null, permissions: new Set<string>() };
    const extension = (bound_channel: string, ...install_grants: string[]) =>
      caller({ kind: 'extension', ...NOTHING, bound_channel, install_grants: new Set(install_grants) });
    const tokens: Record<string, Caller> = {
      overlay: caller({ kind: 'overlay', ...NOTHING, bound_channel: 'overlay:mine' }),
      shared: caller({ kind: 'shared_overlay', ...NOTHING, bound_channel: 'overlay:mine' }),
      widget: caller({ kind: 'widget', ...NOTHING, bound_channel: 'widget:mine' }),
      extension: extension(`ext-storage:${install}`, 'events:read', 'automations:read'),
      listening: extension(`ext-storage:${install}`, 'chat:read'),
      // What a person holds opens nothing that is bound.
      person: caller(),
    };
    const MINE = ['overlay:mine', 'widget:mine', `ext-storage:${install}`, `sounds:${ACCOUNT}`];
    const OWN = [`presence:widget:mine`, EVENTS, `chat:${ACCOUNT}`, `automations:${ACCOUNT}`];
    const FOREIGN = ['overlay:other', 'widget:other', `ext-storage:${ACCOUNT}`, `sounds:${OTHER_ACCOUNT}`];
    const OPENED: Record<string, string[]> = {
      overlay: ['overlay:mine', `sounds:${ACCOUNT}`],
      shared: ['overlay:mine', `sounds:${ACCOUNT}`],
      widget: ['widget:mine', `sounds:${ACCOUNT}`],
      extension: [`ext-storage:${install}`, EVENTS],
      listening: [`ext-storage:${install}`, `chat:${ACCOUNT}`],
      person: [`sounds:${ACCOUNT}`, EVENTS, `chat:${ACCOUNT}`, `automations:${ACCOUNT}`],
    };
    for (const [name, opened] of Object.entries(OPENED)) {
      node.callers.set(name, tokens[name]!);
      const client = await Client.open(node.url, name);
      for (const channel of [...MINE, ...OWN, ...FOREIGN, `events:${OTHER_ACCOUNT}`]) {
        const answer = opened.includes(channel) ? { type: 'subscribed' } : { type: 'error', code: 'UNAUTHORIZED' };
        expect([name, channel, await client.subscribe(channel)]).toMatchObject([name, channel, answer]);
      }
      client.end();
    }
  });

  test('a user alone hears what concerns them, by a session or a key of their own', async () => {
    const [ada, bob] = ['0190a000-0000-7000-8000-0000000000ad', '0190a000-0000-7000-8000-0000000000b0'];
    const client_of_ada = { client_id: install, grant_id: install, scopes: [] };
    const callers: Record<string, [Caller, boolean]> = {
      ada: [caller({ user_id: ada, account_id: null, permissions: new Set() }), true],
      key: [caller({ kind: 'user_api_key', user_id: ada }), true],
      bob: [caller({ user_id: bob }), false],
      popout: [caller({ kind: 'popout', user_id: ada }), false],
      client: [caller({ user_id: ada, client: client_of_ada }), false],
      service: [caller({ kind: 'service_key', user_id: null }), false],
      system: [caller({ kind: 'system_key', user_id: null, permissions: new Set(['*:*']) }), false],
    };
    for (const [name, [who, opens]] of Object.entries(callers)) {
      node.callers.set(name, who);
      const client = await Client.open(node.url, name);
      const { type, code } = await client.subscribe(`user:${ada}`);
      expect([name, code ?? type]).toEqual([name, opens ? 'subscribed' : 'UNAUTHORIZED']);
      client.end();
    }
    const nobody = await Client.open(node.url, null);
    expect(await nobody.subscribe(`user:${ada}`)).toMatchObject({ code: 'UNAUTHORIZED' });
    nobody.end();
  });

  test('a stream that shows its numbers begins with them, once; one that does not begins with nothing', async () => {
    const own = await realtimeNode(t, {
      async stream_snapshot(platform, broadcast_id) {
        if (broadcast_id === 'broken') throw new Error('no database');
        return broadcast_id === 'shown' ? { platform, broadcast_id, viewers: 7 } : null;
      },
    });
    const client = await Client.open(own.url, null);
    for (const id of ['broken', 'opted-out', 'shown']) await client.subscribe(`public-stats:kick:${id}`);
    // What cannot be begun with has to be asked for again.
    const failed = await client.next(({ type }) => type === 'error', 'the failure');
    expect(failed).toMatchObject({ code: 'SUBSCRIBE_FAILED', channel: 'public-stats:kick:broken' });
    await client.subscribe('public-stats:kick:shown');
    await client.next((message) => message.data !== undefined, 'the numbers');
    await client.ask({ type: 'ping' }, 'pong');
    expect(client.messages.filter(({ type }) => type === 'event')).toEqual([
      {
        type: 'event',
        channel: 'public-stats:kick:shown',
        event_type: 'public-stats:bootstrap',
        data: { platform: 'kick', broadcast_id: 'shown', viewers: 7 },
      },
    ]);
    const refused_at = await client.ask(
      { type: 'broadcast', channel: 'public-stats:kick:shown', payload: '{}' },
      'error',
    );
    expect(refused_at.code).toBe('UNAUTHORIZED');
    client.end();
    await own.stop();
    // As long as no area tells the numbers, every broadcast is an unknown one.
    const unfilled = await Client.open(node.url, null);
    await unfilled.subscribe('public-stats:kick:shown');
    await unfilled.ask({ type: 'ping' }, 'pong');
    expect(unfilled.messages.map(({ type }) => type)).toEqual(['welcome', 'subscribed', 'pong']);
    unfilled.end();
  });

  test('a flag that cannot be read is SUBSCRIBE_FAILED', async () => {
    const broken = await realtimeNode(t, { features: { enabled: () => Promise.reject(new Error('no database')) } });
    const client = await Client.open(broken.url);
    expect(await client.subscribe(EVENTS)).toMatchObject({ type: 'error', code: 'SUBSCRIBE_FAILED' });
    await client.ask({ type: 'ping' }, 'pong');
    await broken.stop();
  });
});

describe('broadcast', () => {
  test('reaches every subscriber on every node, wrapped', async () => {
    const relay = createLocalRelay();
    const a = await realtimeNode(t, { relay });
    const b = await realtimeNode(t, { relay });
    const sender = await Client.open(a.url);
    const near = await Client.open(a.url);
    const far = await Client.open(b.url);
    await Promise.all([near.subscribe(EVENTS), far.subscribe(EVENTS)]);
    sender.send({ type: 'broadcast', channel: EVENTS, payload: '{"type":"my:thing","n":820982911946154508}' });
    sender.send({ type: 'broadcast', channel: EVENTS, payload: '[1]' });
    for (const client of [near, far]) {
      await client.next((message) => message.event_type === 'broadcast', 'the broadcast');
      const [first, second] = client.messages.filter((message) => message.type === 'event');
      expect(first).toEqual({
        type: 'event',
        channel: EVENTS,
        event_type: 'my:thing',
        data: expect.objectContaining({ type: 'my:thing' }),
      });
      expect(second).toEqual({ type: 'event', channel: EVENTS, event_type: 'broadcast', data: [1] });
    }
    await a.stop();
    await b.stop();
  });

  test('who is subscribed hears other nodes: a channel opens when the relay has acknowledged its topic', async () => {
    const local = createLocalRelay();
    const asked: string[] = [];
    let acknowledge = (): void => undefined;
    const acknowledged = new Promise<boolean>((heard) => (acknowledge = () => heard(true)));
    const held = `live:${shardOf(EVENTS)}`;
    const heard = async (topic: string) => (asked.push(topic), topic === held ? acknowledged : true);
    const own = await realtimeNode(t, { relay: { ...local, heard } });
    const [waiting, other] = [await Client.open(own.url), await Client.open(own.url)];
    waiting.send({ type: 'subscribe', channel: EVENTS });
    await until(() => asked.includes(held));
    // Another channel, whose head is read as well, is open meanwhile.
    expect(await other.subscribe('ideas:list')).toMatchObject({ type: 'subscribed' });
    expect(waiting.messages.map(({ type }) => type)).toEqual(['welcome']);
    acknowledge();
    await waiting.next(({ type }) => type === 'subscribed', 'the subscription');
    for (const client of [waiting, other]) client.end();
    await own.stop();
  });

  test.each([
    [EVENTS, '{', 'INVALID_FORMAT'],
    [EVENTS, '', 'INVALID_FORMAT'],
    [`chat:${ACCOUNT}`, '{}', 'UNAUTHORIZED'],
    [`events:${OTHER_ACCOUNT}`, '{}', 'UNAUTHORIZED'],
    [`history:${ACCOUNT}`, '{}', 'UNAUTHORIZED'],
    [`login-assignments:${ACCOUNT}`, '{}', 'UNAUTHORIZED'],
    ['nothing', '{}', 'UNAUTHORIZED'],
  ])('to %s with %s is %s', async (channel, payload, code) => {
    const client = await Client.open(node.url);
    expect(await client.ask({ type: 'broadcast', channel, payload }, 'error')).toMatchObject({ code });
    client.end();
  });

  test('that would be over 64 KiB as it goes out is refused: its type stands there twice', async () => {
    const client = await Client.open(node.url);
    const payload = JSON.stringify({ type: 'x'.repeat(34_000) });
    const answer = await client.ask({ type: 'broadcast', channel: EVENTS, payload }, 'error');
    expect(answer).toMatchObject({ code: 'MESSAGE_TOO_LARGE', channel: EVENTS });
    client.end();
  });
});

describe('the end of a session', () => {
  test('an expired credential: TOKEN_EXPIRED, then 4401', async () => {
    node.callers.set('short', caller({ expires_at: Date.now() + 1_500 }));
    const client = await Client.open(node.url, 'short');
    expect(await client.closed()).toBe(4401);
    expect(client.close_reason).toBe('TOKEN_EXPIRED');
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'TOKEN_EXPIRED' });
  });

  test('a revoked credential: TOKEN_REVOKED, then 4401; its neighbours stay', async () => {
    node.callers.set('doomed', caller({ credential_id: 'doomed' }));
    node.callers.set('lapsed', caller({ credential_id: 'lapsed', user_id: 'u2' }));
    const doomed = await Client.open(node.url, 'doomed');
    const lapsed = await Client.open(node.url, 'lapsed');
    const other = await Client.open(node.url);
    node.revoke({ credential_id: 'doomed' });
    node.ended.add('lapsed');
    node.revoke({ user_id: 'u2' });
    for (const client of [doomed, lapsed]) {
      expect(await client.closed()).toBe(4401);
      expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'TOKEN_REVOKED' });
    }
    await other.ask({ type: 'ping' }, 'pong');
    // Revoked while the socket was opening.
    const late = await Client.open(node.url, 'doomed');
    expect(await late.closed()).toBe(4401);
    other.end();
  });

  test('withdrawn permissions end the channels that they opened; the socket and its other channels go on', async () => {
    const own = await realtimeNode(t);
    const holding = (...permissions: string[]) => caller({ permissions: new Set(permissions) });
    const chat = `chat:${ACCOUNT}`;
    own.callers.set('good', holding('events:read'));
    const before = await Client.open(own.url);
    own.callers.set('good', holding('events:read', 'chat:read'));
    const after = await Client.open(own.url);
    for (const client of [before, after]) await client.subscribe(EVENTS);
    expect(await before.subscribe(chat)).toMatchObject({ type: 'error', code: 'UNAUTHORIZED' });
    // What its credential is granted later it may use at once, and loses with the next withdrawal.
    const change = async (...permissions: string[]) => {
      own.current.set('c1', holding(...permissions));
      own.revoke({ user_id: 'u1' });
      for (const client of [before, after]) await client.ask({ type: 'ping' }, 'pong');
    };
    await change('events:read', 'chat:read');
    for (const client of [before, after]) expect(await client.subscribe(chat)).toMatchObject({ type: 'subscribed' });
    const refusals = ({ messages }: Client) => messages.filter(({ type }) => type === 'error');
    const [first, second] = [refusals(before).length, refusals(after).length];
    // Twice within seconds: one box of a role after the other.
    await change('events:read', 'automations:read');
    await change('events:read');
    await before.until(() => refusals(before).length > first, 'the end of the chat');
    await after.until(() => refusals(after).length > second, 'the end of the chat');
    for (const client of [before, after]) {
      expect(refusals(client).at(-1)).toMatchObject({ code: 'UNAUTHORIZED', channel: chat });
      expect(await client.subscribe(chat)).toMatchObject({ type: 'error', code: 'UNAUTHORIZED' });
    }
    await publish(t, own, EVENTS, [{ n: 1 }]);
    for (const client of [before, after])
      await client.until(() => client.events(EVENTS).length === 1, 'the event on the socket that goes on');
    await own.stop();
  });

  test('a caller who left the account loses its channels alone; another account ends the socket', async () => {
    const own = await realtimeNode(t);
    const user_id = '0f000000-0000-4000-8000-0000000000aa';
    const mine = `user:${user_id}`;
    own.callers.set('good', caller({ user_id }));
    const client = await Client.open(own.url);
    for (const channel of [EVENTS, mine]) expect(await client.subscribe(channel)).toMatchObject({ type: 'subscribed' });
    own.current.set('c1', caller({ user_id, account_id: null, permissions: new Set() }));
    own.revoke({ user_id, account_id: ACCOUNT });
    const lost = await client.next(({ type }) => type === 'error', 'the end of the channel');
    expect(lost).toMatchObject({ code: 'UNAUTHORIZED', channel: EVENTS });
    await publish(t, own, mine, [{ n: 1 }]);
    await client.until(() => client.events(mine).length === 1, 'the message on the other channel');
    expect(client.messages.filter(({ type }) => type === 'error')).toHaveLength(1);

    own.current.clear();
    const other = await Client.open(own.url);
    own.current.set('c1', caller({ user_id, account_id: OTHER_ACCOUNT }));
    own.revoke({ user_id });
    expect(await other.closed()).toBe(4401);
    expect(other.close_reason).toBe('TOKEN_REVOKED');
    await own.stop();
  });

  test('a feature that was turned off ends its channels', async () => {
    const client = await Client.open(node.url);
    await client.subscribe(EVENTS);
    node.off.add('feature:events');
    node.revoke({ account_id: ACCOUNT });
    expect(await client.next((message) => message.type === 'error', 'the error')).toMatchObject({
      code: 'FEATURE_DISABLED',
      channel: EVENTS,
    });
    node.off.clear();
    await client.ask({ type: 'ping' }, 'pong');
    client.end();
  });

  test('what was turned off for everybody ends its channels, those of the anonymous too, and no other', async () => {
    const [known, nobody] = [await Client.open(node.url), await Client.open(node.url, null)];
    for (const client of [known, nobody])
      for (const channel of ['ideas:list', 'public-stats:kick:99'])
        expect(await client.subscribe(channel)).toMatchObject({ type: 'subscribed' });
    await known.subscribe(EVENTS);
    node.off.add('system:ideas_hub_public');
    node.revoke({});
    for (const client of [known, nobody]) {
      const ended = await client.next(({ type }) => type === 'error', 'the error');
      expect(ended).toMatchObject({ code: 'FEATURE_DISABLED', channel: 'ideas:list' });
      await client.ask({ type: 'ping' }, 'pong');
      expect(client.messages.filter(({ type }) => type === 'error')).toHaveLength(1);
      client.end();
    }
    node.off.clear();
  });

  test('a right that goes while its channel opens lets nobody in', async () => {
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    let asked = false;
    const query: typeof t.db.query = async (text, values, name) => {
      if (name === 'realtime_head') {
        asked = true;
        await answered;
      }
      return t.db.query(text, values, name);
    };
    const own = await realtimeNode(t, { db: { query } });
    const client = await Client.open(own.url, null);
    client.send({ type: 'subscribe', channel: 'ideas:list' });
    await until(() => asked);
    own.off.add('system:ideas_hub_public');
    own.revoke({});
    answer();
    const said = await client.next(({ type }) => type !== 'welcome', 'the answer');
    expect(said).toMatchObject({ type: 'error', code: 'FEATURE_DISABLED', channel: 'ideas:list' });
    expect(own.realtime.stats().channels).toBe(0);
    await own.stop();
  });

  test.each([
    ['the user', { user_id: 'u1' }],
    ['the account', { account_id: ACCOUNT }],
  ])('what %s loses while a socket is let in opens no channel', async (_whose, revocation) => {
    let let_in = (): void => undefined;
    const free = new Promise<boolean>((resolve) => (let_in = () => resolve(true)));
    let asked = false;
    const take = () => ((asked = true), free);
    // No beat comes that would find it by looking at everybody.
    const windows = { silence_ms: 600_000, stall_ms: 600_000, beat_ms: 600_000 };
    const own = await realtimeNode(t, { slots: { take, giveBack: () => undefined }, windows });
    const opening = Client.open(own.url);
    await until(() => asked);
    own.current.set('c1', caller({ permissions: new Set() }));
    own.revoke(revocation);
    let_in();
    const client = await opening;
    await client.ask({ type: 'ping' }, 'pong');
    expect(await client.subscribe(EVENTS)).toMatchObject({ type: 'error', code: 'UNAUTHORIZED' });
    await own.stop();
  });

  test('a switch that cannot be judged by at once is judged by with the next beat', async () => {
    let state: 'on' | 'away' | 'off' = 'on';
    const own = await realtimeNode(t, {
      features: {
        async enabled() {
          if (state === 'away') throw new Error('the database is away');
          return state === 'on';
        },
      },
    });
    const clients = [await Client.open(own.url), await Client.open(own.url, null)];
    for (const client of clients) await client.subscribe('ideas:list');
    state = 'away';
    own.revoke({});
    await clients[0]!.ask({ type: 'ping' }, 'pong');
    state = 'off';
    for (const client of clients) {
      const ended = await client.next(({ type }) => type === 'error', 'the error');
      expect(ended).toMatchObject({ code: 'FEATURE_DISABLED', channel: 'ideas:list' });
      client.end();
    }
    await own.stop();
  });

  test('stopping closes with 1012 and lets nobody in', async () => {
    const own = await realtimeNode(t);
    const clients = await Promise.all(Array.from({ length: 20 }, () => Client.open(own.url)));
    expect(own.realtime.stats()).toEqual({ sessions: 20, channels: 0 });
    const stopped = own.realtime.stop();
    for (const client of clients) expect(await client.closed()).toBe(1012);
    await stopped;
    expect((await refused(own.url)).status).toBe(503);
    await own.stop();
  });

  test('silence closes with 4408; anything inbound keeps the session', async () => {
    const own = await realtimeNode(t, { windows: { silence_ms: 3_000, stall_ms: 30_000 } });
    const [silent, pinging, control] = await Promise.all([
      Client.open(own.url),
      Client.open(own.url),
      Client.open(own.url),
    ]);
    const timer = setInterval(() => {
      pinging.send({ type: 'ping' });
      control.ws.ping();
    }, 500);
    expect(await silent.closed()).toBe(4408);
    clearInterval(timer);
    await pinging.ask({ type: 'ping' }, 'pong');
    await control.ask({ type: 'ping' }, 'pong');
    await own.stop();
  });
});

test('sessions and channels are counted', async () => {
  const own = await realtimeNode(t);
  const client = await Client.open(own.url);
  await client.subscribe(EVENTS);
  expect(own.realtime.stats()).toEqual({ sessions: 1, channels: 1 });
  client.end();
  await own.stop();
});
