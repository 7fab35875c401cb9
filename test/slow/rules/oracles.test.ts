import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { DATABASE_KILLED, ENGINE_AWAY } from '../../faults/support/excuses';
import { embeddedEnds } from '../../faults/support/ends';
import { followersBehind } from '../../faults/support/followers';
import {
  BOOKS,
  checkBooks,
  checkChannel,
  checkChat,
  checkEvents,
  checkKeys,
  checkLog,
  checkPayments,
} from '../../faults/support/oracles';
import { compareHashes, hashesOf, TABLES } from '../../faults/support/read-models';
import { type Sent, Traffic } from '../../faults/support/traffic';
import { until } from '../../faults/support/dose';
import { Printed } from '../../support/printed';
import { type DevCredentials, runLumio, startServer, type TestServer } from '../../support/server';

/** What the kill loops and the faults are judged by must itself turn red: each fault is planted, and found. */
describe('what a real server keeps after a load', () => {
  let server: TestServer;
  let client: pg.Client;
  let sent: Sent;
  const query = async (sql: string, values?: unknown[]) => (await client.query(sql, values)).rows;
  const on = () => ({ query, credentials: server.credentials });

  beforeAll(async () => {
    server = await startServer();
    client = new pg.Client({ connectionString: server.database!.url });
    await client.connect();
    const node = { base_url: server.base_url, credentials: server.credentials, readCredentials: () => false };
    const traffic = new Traffic({ ...node, disposed: false }, { seed: 1, name: 'load', webhooks: 3 }).start();
    const enough = () => {
      const { keys, payments, chat } = traffic.sent;
      return traffic.acked > 60 && Math.min(...[keys, payments, chat].map(({ acked }) => acked.size)) > 5;
    };
    await until(enough, 'a load');
    sent = await traffic.stop();
    await until(async () => (await behind()).length === 0, 'all that is durable to be applied');
  });
  afterAll(async () => {
    await client?.end();
    await server?.dispose();
  });
  beforeEach(() => query('begin'));
  afterEach(() => query('rollback'));

  const behind = () => followersBehind({ query }, embeddedEnds(query));
  const lane = () => sent.lanes.get('load-w1')!;
  const announced = () => true;
  const all = async () => [
    ...(await checkEvents(on(), sent)).broken,
    ...(await checkKeys(on(), sent)).broken,
    ...(await checkChannel(on(), sent, announced)),
    ...(await checkChat(on(), sent, announced)),
    ...(await checkPayments(on(), sent)),
    ...(await checkBooks(on(), 0)),
  ];
  const copy = (table: string, changed: string, condition: string) =>
    query(`insert into ${table} select (jsonb_populate_record(t, ${changed})).* from ${table} t where ${condition}`);

  test('as it is, nothing is wrong with it', async () => {
    expect(await all()).toEqual([]);
    expect(sent.violations).toEqual([]);
  });

  test('a lost event', async () => {
    await query('delete from platform_event_logs where external_id = $1', [`trovo:${lane()[3]}`]);
    expect((await checkEvents(on(), sent)).broken).toEqual([`1 acknowledged events lost: ${lane()[3]}`]);
    expect((await checkBooks(on(), 0)).map((what) => what.split(':')[0])).toEqual([
      'counters differ from rows',
      'ledger differs from rows',
    ]);
  });

  test('a doubled event', async () => {
    await copy(
      'platform_event_logs',
      `jsonb_build_object('id', gen_random_uuid(), 'created_at', created_at - interval '1 second')`,
      `external_id = 'trovo:${lane()[3]}'`,
    );
    expect((await checkEvents(on(), sent)).broken).toEqual([`1 events applied twice: ${lane()[3]}`]);
  });

  test('an event that nobody sent', async () => {
    const tried = new Set([...sent.tried].filter((id) => id !== lane()[3]));
    const lanes = new Map([...sent.lanes, ['load-w1', lane().filter((id) => id !== lane()[3])]]);
    expect((await checkEvents(on(), { ...sent, lanes, tried })).broken).toEqual([
      `1 events that nobody sent: ${lane()[3]}`,
    ]);
    expect(await checkChannel(on(), { ...sent, lanes, tried }, announced)).toEqual([
      `${lane()[3]} was announced, and nobody sent it`,
    ]);
  });

  const CHANNEL = `channel = 'events:' || (select account_id from platform_event_logs limit 1)`;
  const seqOf = async (id: string): Promise<number> =>
    (await query(`select seq::int as seq from outbox where data::json->>'external_id' = $1`, [id]))[0].seq;

  test('an event that was never announced: in the middle, the oldest, the newest, the only one, all of them', async () => {
    const id = lane()[3]!;
    const seq = await seqOf(`trovo:${id}`);
    const unannounced = (which: string) => expect.stringMatching(new RegExp(`of ${which} were never announced`));
    // Its place is left empty.
    await query(`delete from outbox where ${CHANNEL} and seq = ${seq}`);
    expect(await checkChannel(on(), sent, announced)).toEqual([
      expect.stringContaining(`${seq + 1} follows ${seq - 1}`),
      `1 events of load-w1 were never announced: ${id}`,
    ]);
    // The others have moved up.
    await query(`update outbox set seq = seq - 1 where ${CHANNEL} and seq > ${seq}`);
    await query(`update channel_heads set seq = seq - 1 where ${CHANNEL}`);
    expect(await checkChannel(on(), sent, announced)).toEqual([`1 events of load-w1 were never announced: ${id}`]);
    // The newest: the head knows of it.
    await query(`delete from outbox where ${CHANNEL} and seq = (select max(seq) from outbox where ${CHANNEL})`);
    expect(await checkChannel(on(), sent, announced)).toContainEqual(expect.stringContaining('its head is'));
    // None at all, and the head was never moved.
    await query(`delete from outbox where ${CHANNEL}`);
    await query(`delete from channel_heads where ${CHANNEL}`);
    expect(await checkChannel(on(), sent, announced)).toEqual([...sent.lanes.keys()].map(unannounced));
  });

  test('what was trimmed is the oldest and no more than the numbers say', async () => {
    await query(`delete from outbox where ${CHANNEL} and seq <= 20`);
    expect(await checkChannel(on(), sent, announced)).toEqual([]);
    await query(`delete from outbox where ${CHANNEL}`);
    expect(await checkChannel(on(), sent, announced)).toEqual([]);
    await query(`update channel_heads set seq = seq - 1 where ${CHANNEL}`);
    expect(await checkChannel(on(), sent, announced)).toEqual([expect.stringContaining('were never announced')]);
  });

  test('an event that was announced twice, and two in the wrong order', async () => {
    const [a, b] = [await seqOf(`trovo:${lane()[3]}`), await seqOf(`trovo:${lane()[4]}`)];
    const data = `(select data from outbox where ${CHANNEL} and seq = `;
    await query('savepoint whole');
    await query(`update outbox set data = ${data} ${a}) where ${CHANNEL} and seq = ${b}`);
    expect(await checkChannel(on(), sent, announced)).toEqual([
      `${lane()[3]} was announced twice`,
      `1 events of load-w1 were never announced: ${lane()[4]}`,
    ]);
    await query('rollback to whole');
    await query(
      `update outbox o set data = other.data from outbox other where o.${CHANNEL} and other.channel = o.channel
         and o.seq in (${a}, ${b}) and other.seq = ${a + b} - o.seq`,
    );
    expect(await checkChannel(on(), sent, announced)).toEqual([`load-w1: order broken at ${lane()[4]}`]);
  });

  test('a key that is lost, made twice, or was never asked for', async () => {
    const label = [...sent.keys.acked][1]!;
    await copy(
      'api_keys',
      `jsonb_build_object('id', gen_random_uuid(), 'key_hash', md5(random()::text))`,
      `label = '${label}'`,
    );
    expect((await checkKeys(on(), sent)).broken).toEqual([`key ${label} made 2 times`]);
    await query('delete from api_keys where label = $1', [label]);
    expect((await checkKeys(on(), sent)).broken).toEqual([`acknowledged key ${label} lost`]);
    const unasked = { acked: new Set<string>(), tried: new Set([...sent.keys.tried].filter((id) => id !== label)) };
    await query('rollback; begin');
    expect((await checkKeys(on(), { ...sent, keys: unasked })).broken).toEqual([`key ${label} was never asked for`]);
  });

  test('a payment that is lost, and one that nobody sent', async () => {
    const [first, second] = [...sent.payments.acked];
    await query('delete from payment_objects where object_id = $1', [first]);
    expect(await checkPayments(on(), sent)).toEqual([`payments: 1 acknowledged events lost: ${first}`]);
    const tried = new Set([...sent.payments.tried].filter((id) => id !== second));
    const acked = new Set([...sent.payments.acked].filter((id) => tried.has(id) && id !== first));
    expect(await checkPayments(on(), { ...sent, payments: { acked, tried } })).toEqual([
      `payments: 1 events that nobody sent: ${second}`,
    ]);
  });

  test('a chat message that is lost, announced twice, or in another order', async () => {
    const channel = `chat:${server.credentials.account_id}`;
    const [first, second, third] = [...sent.chat.acked];
    const place = `channel = '${channel}' and data::json->>'platform_message_id' =`;
    await query('savepoint whole');
    await query(`update outbox set data = '{"id":"x"}' where ${place} $1`, [second]);
    expect(await checkChat(on(), sent, announced)).toEqual([`chat: 1 messages were never announced: ${second}`]);
    await query('rollback to whole');
    await query(`update outbox set data = (select data from outbox where ${place} $2) where ${place} $1`, [
      third,
      first,
    ]);
    expect(await checkChat(on(), sent, announced)).toEqual([
      `chat: 1 events applied twice: ${first}`,
      `chat: 1 messages were never announced: ${third}`,
    ]);
    await query('rollback to whole');
    await query(
      `update outbox o set data = other.data from outbox other
       where o.channel = '${channel}' and other.channel = o.channel
         and o.data::json->>'platform_message_id' in ($1, $2) and other.data::json->>'platform_message_id' in ($1, $2)
         and o.id <> other.id`,
      [first, second],
    );
    expect(await checkChat(on(), sent, announced)).toEqual([`chat: order broken at ${second}`]);
    await query(`delete from outbox where channel = '${channel}'`);
    expect(await checkChat(on(), sent, announced)).toEqual([
      expect.stringMatching(new RegExp(`^chat: ${sent.chat.acked.size} messages were never announced`)),
    ]);
  });

  test.each([
    ['a projection of records', `position = '0' where projection = 'payment-objects'`, 'payment-objects'],
    ['a projection of events', `position = '1' where projection = 'sessions'`, 'sessions'],
    ['a reactor', `position = '1' where projection = 'reactor:api-keys'`, 'reactor:api-keys'],
  ])('%s that lags behind', async (_what, change, name) => {
    await query(`update checkpoints set ${change}`);
    expect(await behind()).toEqual([name]);
  });

  test.each<[keyof typeof BOOKS, string]>([
    ['counters differ from rows', 'update event_log_counters set count = count + 1'],
    ['ledger differs from rows', 'delete from ledger'],
    ['a stream has a hole or a double', 'update domain_events set revision = revision + 1000'],
    [
      'one event id in two places',
      `alter table domain_events drop constraint domain_events_id_key;
       insert into domain_events select (jsonb_populate_record(e, jsonb_build_object(
         'position', position + 1000, 'stream', 'other-' || stream))).* from domain_events e`,
    ],
    ['a channel head is not its newest message', 'update channel_heads set seq = seq + 1'],
    ['a channel has messages and no head', 'delete from channel_heads'],
  ])('books: %s', async (what, sql) => {
    await query(sql);
    expect(await checkBooks(on(), 0)).toContainEqual(expect.stringContaining(what));
  });

  test('books: a session is left in a transaction', async () => {
    const forgotten = new pg.Client({ connectionString: server.database!.url, application_name: 'lumio forgotten' });
    await forgotten.connect();
    await forgotten.query('begin');
    expect(await checkBooks(on(), 0, 0)).toEqual([expect.stringContaining('a session is left in a transaction')]);
    await forgotten.end();
  });

  test('a dead letter that nobody expected, and one that is missing', async () => {
    await query(
      `insert into dead_letters (projection, source, partition, position, reason, error, status)
         values ('x', 'y', 0, '1', 'poison', 'e', 'parked')`,
    );
    expect(await checkBooks(on(), 0)).toEqual(['1 dead letters, expected 0']);
    expect(await checkBooks(on(), 1)).toEqual([]);
    expect(await checkBooks(on(), 2)).toEqual(['1 dead letters, expected 2']);
  });
});

/** The comparison of live read models with rebuilt ones. */
describe('read models of a server, rebuilt', () => {
  test('all that are declared are as they were, and a changed row of any table is found', async () => {
    const server = await startServer();
    const { db } = server.database!;
    const on = { query: (sql: string) => db.query(sql) };
    try {
      const live = await hashesOf(on);
      const filled = TABLES.filter((table) => !live.get(table)!.startsWith('0/'));
      expect(filled).toEqual(expect.arrayContaining(['accounts', 'api_keys', 'audit_log', 'users']));
      expect(await runLumio(['rebuild', '--all', '--quiet'], server.env)).toMatchObject({ code: 0 });
      expect(compareHashes(live, await hashesOf(on))).toEqual([]);
      for (const table of filled)
        await db.query(`delete from ${table} where ctid in (select ctid from ${table} limit 1)`);
      const found = compareHashes(live, await hashesOf(on));
      expect(found.map((what) => what.split(':')[0])).toEqual(filled);
    } finally {
      await server.dispose();
    }
  });
});

/** The oracle of the log. */
describe('what a server prints', () => {
  const lines = (...all: object[]) => `${all.map((line) => JSON.stringify(line)).join('\n')}\n`;
  const refused = { type: 'Error', message: 'connect ECONNREFUSED 127.0.0.1:5432', code: 'ECONNREFUSED' };

  test('an error is found, wherever its line was cut, and ordinary lines are none', () => {
    const printed = new Printed();
    const text = `lumio ready at http://127.0.0.1:1\n${lines(
      { level: 'warn', msg: 'late' },
      { level: 'error', msg: 'a request failed', error: { type: 'TypeError', message: 'x is not a function' } },
      { level: 'fatal', msg: 'gone' },
    )}`;
    for (const piece of text.match(/[^]{1,7}/g)!) printed.take(piece);
    expect(checkLog(printed, ENGINE_AWAY)).toEqual([
      'logged 1 times: "a request failed" because of TypeError x is not a function',
      'logged 1 times: "gone" because of ',
    ]);
  });

  test('a crash, which writes no line of the log, is found', () => {
    const printed = new Printed();
    printed.take('/srv/dist/bin/main.js:12\n    throw new Error("x");\n');
    expect(checkLog(printed, ENGINE_AWAY)).toHaveLength(2);
  });

  test('an error stays found when much was printed after it', () => {
    const printed = new Printed();
    printed.take(lines({ level: 'error', msg: 'early' }));
    const filler = lines({ level: 'warn', msg: 'x'.repeat(1000) });
    for (let n = 0; n < 1000; n += 1) printed.take(filler);
    expect(printed.text()).not.toContain('early');
    expect(checkLog(printed, [])).toEqual(['logged 1 times: "early" because of ']);
    for (let n = 0; n < 1500; n += 1) printed.take(lines({ level: 'error', msg: 'again' }));
    expect(checkLog(printed, [])).toContain('logged 1500 times: "again" because of ');
    for (let n = 0; n < 1500; n += 1) printed.take(lines({ level: 'error', msg: `kind ${n}` }));
    expect(checkLog(printed, [])).toContain('logged 502 times: "errors of kinds that are not kept here" because of ');
  });

  test('what a fault brings about is excused by message and reason together, and by nothing else', () => {
    const told = (...all: object[]) => {
      const printed = new Printed();
      printed.take(lines(...all));
      return checkLog(printed, DATABASE_KILLED);
    };
    const failed = { level: 'error', msg: 'a request failed' };
    expect(told({ ...failed, error: refused })).toEqual([]);
    expect(told({ ...failed, error: { type: 'ApiError', message: 'not stored', cause: refused } })).toEqual([]);
    expect(told({ level: 'error', msg: 'stopping', reason: 'PostgreSQL ended (SIGKILL): …' })).toEqual([]);
    expect(told({ ...failed, error: { type: 'TypeError', message: 'database is undefined' } })).toHaveLength(1);
    expect(told({ level: 'error', msg: 'something else', error: refused })).toHaveLength(1);
    expect(told({ level: 'error', msg: 'stopping', reason: 'PostgreSQL ended (SIGSEGV)' })).toHaveLength(1);
  });

  test('a line that a kill cut off is no line', () => {
    const printed = new Printed();
    printed.take('{"level":"warn","ms');
    printed.cut();
    printed.take(lines({ level: 'warn', msg: 'the next life' }));
    expect(checkLog(printed, [])).toEqual([]);
  });
});

/** The load itself judges answers: only what a fault excuses may come. */
describe('what a load takes for an answer', () => {
  let server: Server;
  let answers: (path: string) => { status: number; text?: string; headers?: Record<string, string> };
  let base_url: string;
  beforeAll(async () => {
    server = createServer((request, response) => {
      request.resume();
      request.on('end', () => {
        const { status, text = '{}', headers } = answers(request.url!);
        response.writeHead(status, headers).end(text);
      });
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server?.close());

  const WEBHOOK = '/v1/webhooks/trovo';
  const EMIT = '/v1/events/emit';
  const done = (path: string) => ({ status: path === '/v1/api-keys' ? 201 : 200 });
  const late = { 'retry-after': '5' };

  /** The first requests to `path` are answered so, all others well. Returns kinds of violations. */
  async function judge(path: string, status: number, text = '{}', headers: Record<string, string> = {}) {
    let bad = 6;
    answers = (asked) => (asked === path && (bad -= 1) >= 0 ? { status, text, headers } : done(asked));
    const credentials = {
      access_token: 'token',
      connections: { trovo: { platform_channel_id: '1' } },
      webhook_signing: { trovo_secret: 's' },
    } as DevCredentials;
    const lanes = { webhooks: 1, payments: 0, chat: 0, given_up: 0.3, pause_ms: 0 };
    const traffic = new Traffic(
      { base_url, credentials, readCredentials: () => false, disposed: false },
      { seed: 3, ...lanes },
    );
    traffic.start();
    await until(() => bad < 0 && traffic.acked > 30, 'the load');
    const { violations } = await traffic.stop();
    return [...new Set(violations.map((what) => what.replace(/ run-\w+-\d+/, '')))];
  }

  test.each<[string, number, string, Record<string, string>]>([
    [WEBHOOK, 503, '{}', late],
    [EMIT, 503, '{}', late],
    [EMIT, 429, '{}', late],
    [EMIT, 409, 'A request with this Idempotency-Key is still in progress', late],
    ['/v1/api-keys', 409, 'The key was created but can no longer be shown', {}],
  ])('%s: %d %s is excused', async (...given) => {
    expect(await judge(...given)).toEqual([]);
  });

  test.each<[string, number, string, Record<string, string>]>([
    [WEBHOOK, 500, '{}', {}],
    [WEBHOOK, 500, '{}', late],
    [WEBHOOK, 503, '{}', {}],
    [WEBHOOK, 429, '{}', late],
    [WEBHOOK, 401, '{}', {}],
    [EMIT, 500, '{}', {}],
    [EMIT, 502, '{}', late],
    [EMIT, 503, '{}', {}],
    [EMIT, 429, '{}', {}],
    [EMIT, 401, '{}', {}],
    [EMIT, 409, '{}', late],
    [EMIT, 201, '{}', {}],
    ['/v1/api-keys', 500, '{}', {}],
  ])('%s: %d %s %j is a violation', async (...given) => {
    expect(await judge(...given)).toHaveLength(1);
  });

  test('what was not taken, and what still waits, is in the slowest of a hundred', async () => {
    const traffic = new Traffic(
      { base_url, credentials: {} as DevCredentials, readCredentials: () => false, disposed: false },
      { seed: 1 },
    );
    const now = Date.now();
    for (let n = 0; n < 200; n += 1) traffic.sent.answers.push({ at: now, ms: 5 });
    expect(traffic.p99Since(now)).toBe(5);
    for (let n = 0; n < 3; n += 1) traffic.sent.answers.push({ at: now, ms: Number.POSITIVE_INFINITY });
    expect(traffic.p99Since(now)).toBe(Number.POSITIVE_INFINITY);
  });
});
