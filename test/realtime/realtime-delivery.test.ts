import { type Socket } from 'node:net';
import { testDatabase, type TestDatabase } from '../support/database';
import { PATIENCE_MS } from '../support/patience';
import { ACCOUNT, caller, Client, OTHER_ACCOUNT, publish, realtimeNode, type RealtimeNode } from '../support/realtime';

const EVENTS = `events:${ACCOUNT}`;
const CHAT = `chat:${ACCOUNT}`;
let t: TestDatabase;
let node: RealtimeNode;

beforeEach(async () => {
  t = await testDatabase();
  // The clients here send no pings, and a burst of 40 MB takes longer than their silence may on a busy machine.
  node = await realtimeNode(t, { windows: { silence_ms: 120_000, stall_ms: 30_000 } });
});
afterEach(async () => {
  await node.stop();
  await t.drop();
});

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const numbers = (from: number, to: number): { n: number }[] => range(from, to).map((n) => ({ n }));
const got = (client: Client, channel = EVENTS): number[] => client.events(channel).map((data) => data.n);
const lastId = (client: Client, channel = EVENTS): string =>
  client.messages.filter((message) => message.channel === channel && message.id).at(-1)!.id!;

describe('resume', () => {
  test('a client that comes back gets exactly what it missed, then what follows', async () => {
    const first = await Client.open(node.url);
    await first.subscribe(EVENTS);
    await publish(t, node, EVENTS, numbers(1, 5));
    await first.until(() => got(first).length === 5, 'five');
    const since = lastId(first);
    first.end();
    await publish(t, node, EVENTS, numbers(6, 40));
    const second = await Client.open(node.url);
    expect(await second.subscribe(EVENTS, since)).toMatchObject({
      type: 'subscribed',
      channel: EVENTS,
      recovered: true,
    });
    await publish(t, node, EVENTS, numbers(41, 50));
    await second.until(() => got(second).length >= 45, '45 messages');
    expect(got(second)).toEqual(range(6, 50));
    // Nothing missed: recovered, nothing sent again.
    const third = await Client.open(node.url);
    expect(await third.subscribe(EVENTS, lastId(second))).toMatchObject({ recovered: true });
    await publish(t, node, EVENTS, numbers(51, 51));
    await third.until(() => got(third).length > 0, 'the 51st');
    expect(got(third)).toEqual([51]);
  });

  test('many clients leave and come back while messages are published: no gap, no double, in order', async () => {
    const TOTAL = 3_000;
    let sent = 0;
    const publishing = (async () => {
      while (sent < TOTAL) {
        const upto = Math.min(TOTAL, sent + 1 + (sent % 17));
        await publish(t, node, EVENTS, numbers(sent + 1, upto));
        sent = upto;
      }
    })();
    const follow = async (stay: number): Promise<number[]> => {
      const seen: number[] = [];
      const recovered: (boolean | undefined)[] = [];
      let since: string | undefined;
      while (seen.length === 0 || seen.at(-1)! < TOTAL) {
        const client = await Client.open(node.url);
        const answer = await client.subscribe(EVENTS, since);
        recovered.push(answer.recovered);
        await client.until(() => got(client).length >= stay || got(client).at(-1) === TOTAL, 'some messages');
        client.end();
        const events = client.messages.filter((message) => message.type === 'event');
        seen.push(...events.map((message) => message.data!.n));
        since = events.at(-1)!.id!;
      }
      // The first one came without `since`; all that came back got what they missed.
      expect(recovered.length).toBeGreaterThan(1);
      expect(recovered).toEqual([undefined, ...Array<boolean>(recovered.length - 1).fill(true)]);
      return seen;
    };
    const all = await Promise.all([101, 203, 307, 400, 511].map(follow));
    await publishing;
    for (const seen of all) expect(seen).toEqual(range(seen[0]!, TOTAL));
  });

  test('what a client stores of `subscribed` never stands for messages that it has not got', async () => {
    const first = await Client.open(node.url);
    const since = (await first.subscribe(EVENTS)).id!;
    await publish(t, node, EVENTS, numbers(1, 600));
    await first.until(() => got(first).length === 600, 'six hundred');
    const second = await Client.open(node.url);
    expect(await second.subscribe(EVENTS, since)).toMatchObject({ id: since, recovered: true });
    // Asked again at any time, before, between and after the messages of a replay and of a busy channel.
    const seqOf = (id: string | undefined) => Number(id!.slice(id!.indexOf('-') + 1));
    const publishing = (async () => {
      for (let n = 601; n <= 1_200; n += 6) await publish(t, node, EVENTS, numbers(n, n + 5));
    })();
    let answers = 0;
    while (got(second).at(-1) !== 1_200) {
      await second.subscribe(EVENTS);
      answers += 1;
    }
    await publishing;
    const [from, to] = [seqOf(since), seqOf(since) + 1_200];
    const sent = second.messages.filter(({ type }) => type === 'event').map(({ id }) => seqOf(id));
    expect(sent).toEqual(range(from + 1, to));
    let last = from;
    const ahead = second.messages.filter(({ type, id }) => {
      if (type === 'event') last = seqOf(id);
      return type === 'subscribed' && seqOf(id) > last;
    });
    expect(ahead).toEqual([]);
    expect(answers).toBeGreaterThan(20);
  });

  test('on a node that was not there when it happened', async () => {
    await publish(t, node, EVENTS, numbers(1, 1));
    const client = await Client.open(node.url);
    const since = (await client.subscribe(EVENTS)).id!;
    await publish(t, node, EVENTS, numbers(2, 900));
    const fresh = await realtimeNode(t);
    const there = await Client.open(fresh.url);
    expect(await there.subscribe(EVENTS, since)).toMatchObject({ recovered: true });
    await there.until(() => got(there).length >= 899, 'all');
    expect(got(there)).toEqual(range(2, 900));
    await fresh.stop();
  });

  test('ids of other channels, other epochs, the future, or nobody give recovered: false, and live messages follow', async () => {
    const client = await Client.open(node.url);
    const events = (await client.subscribe(EVENTS)).id!;
    await publish(t, node, EVENTS, numbers(1, 9));
    await publish(t, node, CHAT, numbers(1, 9));
    await client.until(() => got(client).length === 9, 'nine');
    const restored = await realtimeNode(t, { epoch: 'epoch-2' });
    const cases: [RealtimeNode, string, string][] = [
      [node, CHAT, lastId(client)],
      [node, EVENTS, events.replace(/-\d+$/, '-99')],
      [node, EVENTS, events.replace(/-\d+$/, '-01')],
      [node, EVENTS, events.replace(/-\d+$/, '--1')],
      [node, EVENTS, events.replace(/-\d+$/, '-99999999999999999999')],
      [node, EVENTS, ''],
      [node, EVENTS, 'made up'],
      [restored, EVENTS, lastId(client)],
    ];
    for (const [at, channel, since] of cases) {
      const other = await Client.open(at.url);
      expect(await other.subscribe(channel, since)).toMatchObject({ type: 'subscribed', recovered: false });
      await publish(t, at, channel, [{ n: 10 }]);
      await other.until(() => got(other, channel).length > 0, 'a live one');
      expect(got(other, channel)).toEqual([10]);
      other.end();
    }
    await restored.stop();
  });

  test('what is older than the window cannot be resumed', async () => {
    const own = await realtimeNode(t, {
      settings: { allowed_origins: [], public_url: undefined, realtime: { resume_window: 1_000 } },
    });
    const client = await Client.open(own.url);
    const since = (await client.subscribe(EVENTS)).id!;
    await publish(t, own, EVENTS, numbers(1, 3));
    await client.until(() => got(client).length === 3, 'three');
    const newest = lastId(client);
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    const back = await Client.open(own.url);
    expect(await back.subscribe(EVENTS, since)).toMatchObject({ recovered: false });
    const current = await Client.open(own.url);
    expect(await current.subscribe(EVENTS, newest)).toMatchObject({ recovered: true });
    await own.stop();
  });
});

test('a hole is never sent past: the channel is dropped, others go on, and a new subscribe works', async () => {
  const client = await Client.open(node.url);
  await client.subscribe(EVENTS);
  await client.subscribe(CHAT);
  await publish(t, node, EVENTS, numbers(1, 3));
  await client.until(() => got(client).length === 3, 'three');
  await t.db.query('update channel_heads set seq = seq + 1 where channel = $1', [EVENTS]);
  await publish(t, node, EVENTS, numbers(5, 6));
  expect(await client.next((message) => message.code === 'CHANNEL_DROPPED', 'the drop')).toMatchObject({
    type: 'error',
    channel: EVENTS,
  });
  await publish(t, node, CHAT, numbers(1, 1));
  await client.until(() => got(client, CHAT).length === 1, 'chat');
  expect(got(client)).toEqual([1, 2, 3]);
  expect(await client.subscribe(EVENTS, lastId(client))).toMatchObject({ type: 'subscribed', recovered: false });
  await publish(t, node, EVENTS, numbers(7, 7));
  await client.until(() => got(client).length === 4, 'the next');
  expect(got(client)).toEqual([1, 2, 3, 7]);
});

test('terminated database connections and lost wake-ups delay messages and lose none', async () => {
  const client = await Client.open(node.url);
  await client.subscribe(EVENTS);
  for (let round = 0; round < 5; round += 1) {
    await publish(t, node, EVENTS, numbers(round * 10 + 1, round * 10 + 5));
    await t.db.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = current_user and pid <> pg_backend_pid()',
    );
    for (let attempt = 0; ; attempt += 1) {
      try {
        await t.db.query('select outbox_write($1, $2, $3)', [
          Array(5).fill(EVENTS),
          Array(5).fill('x:y'),
          numbers(round * 10 + 6, round * 10 + 10).map((item) => JSON.stringify(item)),
        ]);
        break;
      } catch (error) {
        if (attempt > 20) throw error;
      }
    }
  }
  await client.until(() => got(client).length >= 50, 'all fifty');
  expect(got(client)).toEqual(range(1, 50));
});

test('two tenants, two nodes: nobody hears the other, everybody hears their own', async () => {
  node.callers.set('other', caller({ account_id: OTHER_ACCOUNT, user_id: 'u9', credential_id: 'c9' }));
  const second = await realtimeNode(t);
  const mine = await Client.open(node.url);
  const elsewhere = await Client.open(second.url);
  const foreign = await Client.open(node.url, 'other');
  await mine.subscribe(EVENTS);
  await elsewhere.subscribe(EVENTS);
  await foreign.subscribe(`events:${OTHER_ACCOUNT}`);
  await publish(t, node, EVENTS, numbers(1, 20));
  await publish(t, node, `events:${OTHER_ACCOUNT}`, numbers(100, 120));
  await mine.until(() => got(mine).length === 20, 'mine');
  await elsewhere.until(() => got(elsewhere).length === 20, 'elsewhere');
  await foreign.until(() => got(foreign, `events:${OTHER_ACCOUNT}`).length === 21, 'foreign');
  for (const client of [mine, elsewhere])
    expect(client.messages.filter((message) => message.data).every((message) => message.channel === EVENTS)).toBe(true);
  expect(foreign.events(EVENTS)).toEqual([]);
  await second.stop();
});

describe('slow readers', () => {
  const big = (from: number, to: number): { n: number; pad: string }[] =>
    range(from, to).map((n) => ({ n, pad: 'x'.repeat(20_000) }));

  test('a burst beyond the queue reaches a client that reads, whole', async () => {
    const client = await Client.open(node.url);
    await client.subscribe(EVENTS);
    await publish(t, node, EVENTS, big(1, 2_000));
    await client.until(() => got(client).length >= 2_000, 'the burst');
    expect(got(client)).toEqual(range(1, 2_000));
  });

  test('a client that stops reading is dropped from the channel and told when it reads on; neighbours get all', async () => {
    const healthy = await Client.open(node.url);
    await healthy.subscribe(EVENTS);
    const slow = await Client.open(node.url);
    await slow.subscribe(EVENTS);
    (slow.ws as unknown as { _socket: Socket })._socket.pause();
    for (let i = 0; i < 12; i += 1) {
      await publish(t, node, EVENTS, big(i * 100 + 1, i * 100 + 100));
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    await healthy.until(() => got(healthy).length >= 1_200, 'everything');
    expect(got(healthy)).toEqual(range(1, 1_200));
    const deadline = Date.now() + PATIENCE_MS;
    while (!/channels_dropped_total 1/.test(await node.metrics()) && Date.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 100));
    (slow.ws as unknown as { _socket: Socket })._socket.resume();
    expect(await slow.next((message) => message.code === 'CHANNEL_DROPPED', 'the drop')).toMatchObject({
      channel: EVENTS,
    });
    const seen = got(slow);
    expect(seen).toEqual(range(1, seen.length));
    // The session stayed, and the last id seen leads back in.
    const answer = await slow.subscribe(EVENTS, lastId(slow));
    expect(answer).toMatchObject({ type: 'subscribed', recovered: true });
    await slow.until(() => got(slow).length >= 1_200, 'the rest');
    expect(got(slow)).toEqual(range(1, 1_200));
  });

  test('a channel that fills the queue of a client that stopped reading does not cost it a quiet one', async () => {
    node.callers.set('talker', caller({ permissions: new Set(['chat:write']), credential_id: 'talker' }));
    const slow = await Client.open(node.url);
    for (const channel of [CHAT, EVENTS]) await slow.subscribe(channel);
    const talker = await Client.open(node.url, 'talker');
    const fast = await Client.open(node.url);
    await fast.subscribe(CHAT);
    const socket = (slow.ws as unknown as { _socket: Socket })._socket;
    socket.pause();
    const gone = () => /channels_dropped_total (\d+)/.exec(dropped)?.[1];
    let dropped = '';
    let last = 0;
    const deadline = Date.now() + PATIENCE_MS;
    for (let n = 1; gone() !== '1' && Date.now() < deadline; n += 50) {
      await publish(t, node, EVENTS, big(n, n + 49));
      await publish(t, node, CHAT, numbers((last = n), n));
      dropped = await node.metrics();
    }
    expect(gone()).toBe('1');
    // A broadcast is not stored: it would overtake what the node has yet to read.
    await fast.until(() => got(fast, CHAT).at(-1) === last, 'the last stored message');
    talker.send({ type: 'broadcast', channel: CHAT, payload: '{"n":-1}' });
    await talker.ask({ type: 'ping' }, 'pong');
    socket.resume();
    await slow.until(() => got(slow, CHAT).at(-1) === -1, 'the broadcast');
    const said = got(slow, CHAT).slice(0, -1);
    expect(said).toEqual(said.map((_n, index) => 1 + 50 * index));
    const errors = slow.messages.filter((message) => message.type === 'error');
    expect(errors).toEqual([expect.objectContaining({ code: 'CHANNEL_DROPPED', channel: EVENTS })]);
  });
});
