import { writeProfile } from '../../services/identity/profiles';
import { createLocalPresence } from '../../engines/presence/local';
import type { Presence } from '../../engines/presence/port';
import { createLocalRelay } from '../../engines/relay/local';
import type { Relay } from '../../engines/relay/port';
import { shardOf } from '../../lib/hash/shards';
import type { Subscriber } from '../../realtime/runtime/channel/family';
import { PresenceRooms } from '../../realtime/runtime/presence/presence-rooms';
import type { Subscription } from '../../realtime/runtime/channel/channel';
import { type TestDatabase, testDatabase } from '../support/database';
import { silentLog } from '../support/log';
import { until } from '../support/projections';
import {
  ACCOUNT,
  caller,
  Client,
  familiesWith,
  OTHER_ACCOUNT,
  type RealtimeNode,
  realtimeNode,
} from '../support/realtime';

const ADA = '0190a000-0000-7000-8000-0000000000aa';
const OWNER = '0190a000-0000-7000-8000-0000000000ab';
const WIDGET = `presence:widget:w1`;
const widget = async (id: string) => (id === 'w1' ? { account_id: ACCOUNT, bound: false, owned: false } : null);

describe('presence channels', () => {
  let t: TestDatabase;
  let relay: Relay;
  let store: Presence;
  let nodes: RealtimeNode[];
  const clients: Client[] = [];

  beforeAll(async () => {
    t = await testDatabase();
    const avatar_url = 'https://x.example/a.png';
    await writeProfile(t.db, { user_id: ADA, display_name: 'Ada "A"', avatar_url, email: null });
  });
  afterAll(() => t.drop());
  beforeEach(async () => {
    relay = createLocalRelay();
    store = createLocalPresence();
    const windows = { silence_ms: 30_000, stall_ms: 30_000, compare_ms: 100 };
    const node = () => realtimeNode(t, { relay, presence: store, windows, families: familiesWith({ widget }) });
    nodes = await Promise.all([node(), node()]);
    for (const one of nodes) {
      one.callers.set('ada', caller({ user_id: ADA }));
      one.callers.set('token', caller({ kind: 'service_key', user_id: null }));
      one.callers.set('stranger', caller({ account_id: OTHER_ACCOUNT }));
    }
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.end();
    await Promise.all(nodes.map((node) => node.stop()));
  });

  async function open(node: 0 | 1 | 2, token: string | null): Promise<Client> {
    const client = await Client.open(nodes[node]!.url, token);
    clients.push(client);
    return client;
  }
  const of = (event_type: string) => (message: { event_type?: string }) => message.event_type === event_type;
  const idOf = (client: Client) => client.messages[0]!.session_id;

  test('a popout token that acts for another member is shown as its maker', async () => {
    const popout = { kind: 'popout', user_id: OWNER, made_by: ADA } as const;
    nodes[0]!.callers.set('popout', caller(popout));
    nodes[0]!.callers.set('own', caller({ ...popout, user_id: ADA }));
    const shown = async (token: string) => {
      const client = await open(0, token);
      await client.subscribe(WIDGET);
      const { data } = await client.next(of('presence:bootstrap'), 'the list');
      const { connections } = data as unknown as { connections: { connection_id: string }[] };
      return connections.find(({ connection_id }) => connection_id === idOf(client));
    };
    const ada = { display_name: 'Ada "A"', user_id: ADA, account_id: ACCOUNT };
    expect(await shown('popout')).toMatchObject({ ...ada, acts_for: OWNER });
    const own = await shown('own');
    expect(own).toMatchObject(ada);
    expect(own).not.toHaveProperty('acts_for');
  });

  test('who subscribes is shown who is there, on every node, and then who comes and goes', async () => {
    const ada = await open(0, 'ada');
    expect((await ada.subscribe(WIDGET)).type).toBe('subscribed');
    const alone = await ada.next(of('presence:bootstrap'), 'the list');
    const shown = {
      connection_id: idOf(ada),
      display_name: 'Ada "A"',
      avatar: 'https://x.example/a.png',
      user_id: ADA,
      account_id: ACCOUNT,
    };
    expect(alone).toEqual({
      type: 'event',
      channel: WIDGET,
      event_type: 'presence:bootstrap',
      data: { connections: [shown], total: 1 },
    });
    const from = ada.messages.length;
    const bot = await open(1, 'token');
    await bot.subscribe(WIDGET);
    const both = await bot.next(of('presence:bootstrap'), 'the list');
    const unnamed = {
      connection_id: idOf(bot),
      display_name: null,
      avatar: null,
      user_id: null,
      account_id: ACCOUNT,
    };
    expect(both.data).toEqual({ connections: expect.arrayContaining([shown, unnamed]), total: 2 });
    const joined = (message: { event_type?: string; data?: object }) =>
      message.event_type === 'presence:join' && JSON.stringify(message.data).includes(idOf(bot)!);
    expect((await ada.next(joined, 'the join', from)).data).toEqual(unnamed);

    await bot.ask({ type: 'unsubscribe', channel: WIDGET }, 'unsubscribed');
    expect((await ada.next(of('presence:leave'), 'the leave', from)).data).toEqual(unnamed);
    await bot.subscribe(WIDGET);
    await ada.next(joined, 'the second join', ada.messages.length - 1);
    bot.end();
    await ada.until(() => ada.messages.filter(of('presence:leave')).length === 2, 'the leave of a closed socket');
    expect((await store.list(WIDGET)).map(({ id }) => id)).toEqual([idOf(ada)]);
    // A comparison with the store later nothing has been told twice.
    await new Promise((resolve) => setTimeout(resolve, 350));
    expect(ada.messages.filter(joined)).toHaveLength(2);
    expect(ada.messages.filter(of('presence:leave'))).toHaveLength(2);
  });

  test('only credentials of the account that owns the wrapped resource come in', async () => {
    const refusals: unknown[] = [];
    for (const [token, channel] of [
      ['stranger', WIDGET],
      [null, WIDGET],
      ['ada', 'presence:widget:unknown'],
      ['ada', `presence:events:${OTHER_ACCOUNT}`],
      ['ada', 'presence:presence:widget:w1'],
      ['ada', 'presence:ideas:list'],
      ['ada', 'presence:nonsense:1'],
    ] as const) {
      const client = await open(0, token);
      refusals.push((await client.subscribe(channel)).code);
    }
    expect(refusals).toEqual(Array(7).fill('UNAUTHORIZED'));
    expect(await store.list(WIDGET)).toEqual([]);
    const own = await open(0, 'ada');
    expect((await own.subscribe(`presence:events:${ACCOUNT}`)).type).toBe('subscribed');
  });

  test('connections of a node that died leave, and those that the relay lost come, by themselves', async () => {
    const ada = await open(0, 'ada');
    await ada.subscribe(WIDGET);
    await ada.next(of('presence:bootstrap'), 'the list');
    await store.join(WIDGET, { id: 'ghost', info: '{"connection_id":"ghost"}' });
    const ghost = { connection_id: 'ghost' };
    const told = (event_type: string) => (message: { event_type?: string; data?: object }) =>
      message.event_type === event_type && JSON.stringify(message.data) === JSON.stringify(ghost);
    await ada.next(told('presence:join'), 'the join that nobody told');
    await store.leave(WIDGET, 'ghost');
    await ada.next(told('presence:leave'), 'the leave that nobody told');
    expect(ada.messages.filter(told('presence:join'))).toHaveLength(1);
  });

  test('each is told on the topic of its shard, as it is, and a build before is heard and told', async () => {
    const said: [string, string][] = [];
    const own = createLocalRelay();
    const told: Relay = {
      ...own,
      publish: (topic, message) => (said.push([topic, message]), own.publish(topic, message)),
    };
    const heard_before: unknown[] = [];
    own.subscribe('presence', (text) => heard_before.push(JSON.parse(text)));
    const given = { relay: told, presence: createLocalPresence(), older_nodes_connected: async () => true };
    const node = await realtimeNode(t, { ...given, families: familiesWith({ widget }) });
    nodes.push(node);
    node.callers.set('ada', caller({ user_id: ADA }));
    const ada = await open(2, 'ada');
    await ada.subscribe(WIDGET);
    await ada.next(of('presence:join'), 'the join');
    const info = JSON.stringify((await ada.next(of('presence:join'), 'the join')).data);
    const shard = shardOf(WIDGET);
    const id = idOf(ada)!;
    await ada.until(() => heard_before.length === 1, 'the build before');
    expect(heard_before).toEqual([{ channel: WIDGET, id, info, shard }]);
    expect(said[0]).toEqual([`presence:${shard}`, `${WIDGET}\n${id}\n${info}`]);
    await own.publish('presence', JSON.stringify({ channel: WIDGET, id: 'old', info: '{"connection_id":"old"}' }));
    const old = (message: { data?: object }) => JSON.stringify(message.data) === '{"connection_id":"old"}';
    await ada.next(old, 'the join of a build before');
    await own.publish('presence', JSON.stringify({ channel: WIDGET, id: 'old' }));
    await ada.next(of('presence:leave'), 'its leave');
    expect(ada.messages.filter(of('presence:join'))).toHaveLength(2);
    await ada.ask({ type: 'unsubscribe', channel: WIDGET }, 'unsubscribed');
    await ada.until(() => heard_before.length === 4, 'the leave');
    expect(said.filter(([topic]) => topic !== 'presence').at(-1)).toEqual([`presence:${shard}`, `${WIDGET}\n${id}`]);
  });

  test('a crowd that comes while others are let in is let in by one look, and a list has 500 at most', async () => {
    let looks = 0;
    let look: () => void = () => undefined;
    const let_look = new Promise<void>((resolve) => (look = resolve));
    const held: Presence = {
      ...store,
      async list(channel) {
        looks += 1;
        await let_look;
        return store.list(channel);
      },
    };
    for (let n = 0; n < 600; n += 1) {
      const id = `ghost-${1000 + n}`;
      await store.join(WIDGET, { id, info: JSON.stringify({ connection_id: id }) });
    }
    const node = await realtimeNode(t, { relay, presence: held, families: familiesWith({ widget }) });
    nodes.push(node);
    node.callers.set('ada', caller({ user_id: ADA }));
    const first = await open(2, 'ada');
    await first.subscribe(WIDGET);
    const crowd = await Promise.all(Array.from({ length: 20 }, () => open(2, 'ada')));
    for (const client of crowd) expect((await client.subscribe(WIDGET)).type).toBe('subscribed');
    expect(looks).toBe(1);
    look();
    const list = async (client: Client) =>
      (await client.next(of('presence:bootstrap'), 'the list')).data as unknown as {
        connections: unknown[];
        total: number;
      };
    expect((await list(first)).total).toBe(601);
    for (const client of crowd) {
      const { connections, total } = await list(client);
      expect(total).toBe(621);
      expect(connections).toHaveLength(500);
      const joined = (message: { event_type?: string; data?: object }) =>
        message.event_type === 'presence:join' && JSON.stringify(message.data).includes(idOf(client)!);
      await first.next(joined, 'the join');
    }
    expect(looks).toBe(2);
  });

  test('a crowd is told as one list when it comes and when it goes, and a few are told each', async () => {
    const told: { event_type: string; data: { connection_id?: string; total?: number } }[] = [];
    const hub = { transient: (_channel: string, text: string) => void told.push(JSON.parse(text) as never) };
    const rooms = new PresenceRooms({ hub, store, relay, db: t.db, log: silentLog });
    const nothing = { channel: WIDGET, channel_id: 'widget:w1', send: () => undefined, sendFrame: () => undefined };
    const come = (id: string) => rooms.enter({ id, caller: caller({ user_id: null }), ...nothing } as Subscriber);
    const go = (id: string) => rooms.left({ session: { id }, channel: { name: WIDGET } } as Subscription);
    const said = () => told.map(({ event_type, data }) => [event_type, data.connection_id ?? data.total]);
    await come('first');
    await until(() => told.length === 1);
    const crowd = Array.from({ length: 300 }, (_, n) => `one-${1000 + n}`);
    await Promise.all(crowd.map(come));
    await until(() => told.length > 1);
    for (const id of crowd.slice(2)) go(id);
    await until(() => told.length > 2);
    const say = (text: string) => relay.publish(`presence:${shardOf(WIDGET)}`, `${WIDGET}\n${text}`);
    await Promise.all([crowd[0]!, `${crowd[0]}\n{}`, crowd[1]!].map(say));
    await until(() => told.length > 5);
    await rooms.stop();
    expect(said()).toEqual([
      ['presence:join', 'first'],
      ['presence:bootstrap', 301],
      ['presence:bootstrap', 3],
      ['presence:leave', crowd[0]],
      ['presence:join', undefined],
      ['presence:leave', crowd[1]],
    ]);
  });

  test('what waits to be told of each is bounded by how long it is, and who is there is told then', async () => {
    const told: { event_type: string; data: { connections?: { avatar: string }[]; total?: number } }[] = [];
    const hub = { transient: (_channel: string, text: string) => void told.push(JSON.parse(text) as never) };
    const rooms = new PresenceRooms({ hub, store, relay, db: t.db, log: silentLog });
    const nothing = { channel: WIDGET, channel_id: 'widget:w1', send: () => undefined, sendFrame: () => undefined };
    await rooms.enter({ id: 'first', caller: caller({ user_id: null }), ...nothing } as Subscriber);
    await until(() => told.length === 1);
    const avatar = 'x'.repeat(2000);
    const say = (text: string) => relay.publish(`presence:${shardOf(WIDGET)}`, `${WIDGET}\n${text}`);
    const joined = JSON.stringify({ avatar });
    const pairs = Array.from({ length: 100 }, () => [`other\n${joined}`, 'other']);
    await Promise.all([...pairs.flat(), `last\n${joined}`].map(say));
    await until(() => told.length > 1);
    await rooms.stop();
    expect(told.map(({ event_type }) => event_type)).toEqual(['presence:join', 'presence:bootstrap']);
    expect(told[1]!.data.connections).toEqual([expect.objectContaining({ connection_id: 'first' }), { avatar }]);
  });

  test('the first of a node is shown who came at others until the relay has acknowledged its topic', async () => {
    const own = createLocalRelay();
    const topic = `presence:${shardOf(WIDGET)}`;
    let acknowledge = (): void => undefined;
    const acknowledged = new Promise<boolean>((heard) => (acknowledge = () => heard(true)));
    let asked = false;
    const heard = async (of_topic: string) => {
      if (of_topic !== topic) return true;
      asked = true;
      return acknowledged;
    };
    const given = { relay: { ...own, heard }, presence: store, families: familiesWith({ widget }) };
    const node = await realtimeNode(t, given);
    nodes.push(node);
    node.callers.set('ada', caller({ user_id: ADA }));
    const ada = await open(2, 'ada');
    await ada.subscribe(WIDGET);
    await until(() => asked);
    await store.join(WIDGET, { id: 'other', info: '{"connection_id":"other"}' });
    acknowledge();
    const { data } = await ada.next(of('presence:bootstrap'), 'the list');
    expect(data!.total).toBe(2);
  });

  test('who cannot be let in since the database is away is told to subscribe again, and is not there', async () => {
    let away = true;
    const query: typeof t.db.query = (sql, values, name) =>
      away && name === 'profiles-read' ? Promise.reject(new Error('no database')) : t.db.query(sql, values, name);
    const node = await realtimeNode(t, { relay, presence: store, db: { query }, families: familiesWith({ widget }) });
    nodes.push(node);
    node.callers.set('ada', caller({ user_id: ADA }));
    const ada = await open(2, 'ada');
    await ada.subscribe(WIDGET);
    const failed = await ada.next(({ type }) => type === 'error', 'the error');
    expect(failed).toMatchObject({ code: 'SUBSCRIBE_FAILED', channel: WIDGET });
    expect(await store.list(WIDGET)).toEqual([]);
    away = false;
    const from = ada.messages.length;
    expect((await ada.subscribe(WIDGET)).type).toBe('subscribed');
    const { data } = await ada.next(of('presence:bootstrap'), 'the list', from);
    expect(data).toMatchObject({ connections: [{ display_name: 'Ada "A"' }], total: 1 });
  });

  test('a node that stops takes its connections along', async () => {
    const [stays, goes] = [await open(0, 'ada'), await open(1, 'token')];
    await stays.subscribe(WIDGET);
    await goes.subscribe(WIDGET);
    await goes.next(of('presence:bootstrap'), 'the list');
    await nodes[1]!.stop();
    await stays.next(of('presence:leave'), 'the leave');
    expect((await store.list(WIDGET)).map(({ id }) => id)).toEqual([idOf(stays)]);
  });
});
