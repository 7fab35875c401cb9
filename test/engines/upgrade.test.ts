import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECTIONS } from '../../bin/areas';
import { SEED, until } from '../faults/support/dose';
import { DEADLOCKED, NEWER_ROWS, TAKEN_OVER } from '../faults/support/excuses';
import { checkInvariant } from '../faults/support/invariants';
import { Lumio } from '../faults/support/lumio';
import { both, Traffic } from '../faults/support/traffic';
import { emptyDatabase, ORDINARY_ROLE, type TestDatabase } from '../support/database';
import { probeOf, promised } from '../support/patience';
import { Client, type ServerMessage } from '../support/realtime';
import { runLumio, startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { ENGINES } from './support/process';

const build = (name: string) => ({ node: process.execPath, root: join(ENGINES, name) });

/** The oldest release whose data folders are supported, installed from its own lock file. */
const OLDEST = build('lumio-oldest');
/** The release before this one: 50 to 99 commits back. */
const PREVIOUS = build('lumio-previous');

describe('a data folder that the oldest supported release has filled', () => {
  let server: TestServer;
  let channel: string;
  /** What the build before answered, by what was asked. */
  const answered: Record<string, any> = {};
  const secrets: Record<'kept' | 'removed', string> = { kept: '', removed: '' };
  const received: ServerMessage[] = [];

  const api = () => new ApiClient(server.base_url, server.credentials.access_token);
  const vendors = () => new VendorCloud(server.base_url, server.credentials);
  const writeKept = () =>
    api().send('POST', '/v1/api-keys', { label: 'Kept', permissions: ['events:read'] }, { 'idempotency-key': 'kept' });
  const emit = () =>
    api().send(
      'POST',
      '/v1/events/emit',
      { event_type: 'twitch:cheer', external_id: 'emitted-1', raw: { bits: 1 } },
      { 'idempotency-key': 'emitted' },
    );
  /** Each read model as callers see it; when a key was used last is no part of what was stored. */
  const reads = async () => ({
    events: await api().allEvents(),
    keys: (await api().get('/v1/api-keys')).body.data.map(({ last_used_at: _, ...key }: any) => key),
    me: (await api().get('/v1/tokens/me')).body.data.user,
    others: await new ApiClient(server.base_url, server.credentials.other.access_token).allEvents(),
  });
  const lumio = async (...args: string[]) => {
    const { code, stdout, stderr } = await runLumio(args, server.env);
    expect([args, code, stderr]).toEqual([args, 0, expect.any(String)]);
    return stdout;
  };
  const statusOf = async (key: string, headers = {}) => {
    const url = `${server.base_url}/v1/events?limit=1`;
    return (await fetch(url, { headers: { authorization: `Bearer ${key}`, ...headers } })).status;
  };

  beforeAll(async () => {
    server = await startServer({ embedded: true, program: OLDEST });
    channel = `events:${server.credentials.account_id}`;
    const socket = await Client.open(server.ws_url, server.credentials.access_token);
    expect(await socket.subscribe(channel)).toMatchObject({ type: 'subscribed' });

    for (const n of [1, 2, 3]) expect((await vendors().kickFollow(n, `delivery-${n}`)).status).toBe(200);
    expect((await vendors().youtube('video-1', 'A title')).status).toBe(200);
    const spell = { type: 'channel.spell', message_id: 'spell-1', uid: '7', gift: 'Winner' };
    expect((await vendors().trovo(spell)).status).toBe(200);
    const order = Buffer.from('{"id":820982911946154508,"total_price":"19.90","currency":"EUR"}');
    expect((await vendors().shopify('orders/create', order, 'order-1')).status).toBe(200);
    answered.emitted = (await emit()).body;
    // Signed, and not to be understood: parked.
    expect((await vendors().kick('channel.followed', Buffer.from('[]'))).status).toBe(200);

    answered.kept = (await writeKept()).body;
    secrets.kept = answered.kept.data.key;
    const renamed = await api().send('POST', '/v1/api-keys', { label: 'Old name', permissions: ['events:read'] });
    const path = `/v1/api-keys/${renamed.body.data.id}`;
    expect((await api().send('PATCH', path, { label: 'New name' })).status).toBe(200);
    const removed = await api().send('POST', '/v1/api-keys', { label: 'Removed', permissions: ['events:read'] });
    secrets.removed = removed.body.data.key;
    expect((await api().send('DELETE', `/v1/api-keys/${removed.body.data.id}`, undefined)).status).toBe(204);

    await socket.until(() => socket.events(channel).length >= 7, 'seven events live');
    received.push(...socket.messages.filter((message) => message.channel === channel && message.type === 'event'));
    socket.end();
    await eventually(async () => ((await api().allEvents()).length >= 7 ? true : undefined), 'seven events');
    answered.reads = await reads();
    const { access_token, refresh_token, user_api_key, system_key } = server.credentials;
    answered.credentials = { access_token, refresh_token, user_api_key, system_key };
    expect(await server.stop()).toBe(0);

    const { data_dir } = server;
    server = await startServer({ embedded: true, data_dir });
    // A read model whose version is higher is built first, and says so until it is there.
    await until(async () => (await api().get('/v1/events')).status === 200, 'the read models to be built');
  });
  afterAll(() => server?.dispose());

  test('everything that was there is read as it was', async () => {
    expect(await reads()).toEqual(answered.reads);
    expect(answered.reads.events).toHaveLength(7);
  });

  test('keys, tokens and sessions live on, and what was dead stays dead', async () => {
    const { access_token, refresh_token, user_api_key, system_key } = answered.credentials;
    const account = { 'x-lumio-account': server.credentials.account_id };
    expect(await statusOf(secrets.kept)).toBe(200);
    expect(await statusOf(user_api_key)).toBe(200);
    expect(await statusOf(system_key, account)).toBe(200);
    expect(await statusOf(access_token)).toBe(200);
    expect(await statusOf(secrets.removed)).toBe(401);
    const refreshed = await api().send('POST', '/v1/auth/refresh', { refresh_token });
    expect([refreshed.status, await statusOf(refreshed.body.token)]).toEqual([200, 200]);
  });

  test('a call repeated with its Idempotency-Key, and a delivery sent again, have had their effect', async () => {
    const kept = await writeKept();
    expect([kept.status, kept.headers.get('idempotency-replayed')]).toEqual([201, 'true']);
    expect(kept.body).toEqual(answered.kept);
    expect((await emit()).body).toEqual(answered.emitted);
    expect((await vendors().kickFollow(1, 'delivery-1')).status).toBe(200);
    expect(await reads()).toEqual(answered.reads);
  });

  test('a socket resumes after the last message that the build before gave it, and goes on without a hole', async () => {
    const socket = await Client.open(server.ws_url, server.credentials.access_token);
    const [third, ...missed] = received.slice(2);
    expect(await socket.subscribe(channel, third!.id)).toMatchObject({ type: 'subscribed', recovered: true });
    expect((await vendors().kickFollow(4, 'delivery-4')).status).toBe(200);
    await socket.until(() => socket.events(channel).length > missed.length, 'what was missed, and what is new');
    const resumed = socket.messages.filter((message) => message.channel === channel && message.type === 'event');
    // Stored messages of the oldest release carry `raw`, which this release leaves out of frames.
    expect(missed.map(({ data }) => data)).toEqual(
      missed.map(() => expect.objectContaining({ raw: expect.anything() })),
    );
    expect(resumed.slice(0, missed.length)).toEqual(
      missed.map(({ data, ...message }) => ({ ...message, data: { ...(data as object), raw: undefined } })),
    );
    const seq = (message: ServerMessage) => Number(message.id!.slice(message.id!.lastIndexOf('-') + 1));
    expect(seq(resumed.at(-1)!)).toBe(seq(received.at(-1)!) + 1);
    expect(resumed).toHaveLength(missed.length + 1);
    socket.end();
  });

  test('upkeep runs as jobs, though the build before had none', async () => {
    const done = /lumio_jobs_run_seconds_count\{[^}]*name="event-log-partitions",outcome="done"[^}]*\} 1/;
    const scraped = async () => (await fetch(server.metrics_url)).text();
    await until(async () => done.test(await scraped()), 'the upkeep');
    expect(await lumio('jobs', 'list', '--state', 'failed')).toBe('');
  });

  test('the parked delivery is there, and can be dropped', async () => {
    const [letter, ...others] = (await lumio('parked-webhooks', 'list')).trim().split('\n');
    expect([letter, others]).toEqual([expect.stringContaining('kick'), []]);
    await lumio('parked-webhooks', 'drop', letter!.split('\t')[0]!);
    expect(await lumio('dead-letters', 'list')).toBe('');
  });

  test('every read model is the same when it is built anew, from events and records of the build before', async () => {
    const before = await reads();
    for (const { name } of PROJECTIONS) await lumio('rebuild', name);
    expect(await reads()).toEqual(before);
    expect(server.printed.unexcused()).toEqual([]);
  });
});

/** Processes are replaced one after another: for a while both releases serve one installation. */
describe.each([
  { title: 'the oldest supported release', program: OLDEST, keeps_one_order: true },
  { title: 'the previous release', program: PREVIOUS, keeps_one_order: false },
])('$title and this one next to each other', ({ program, keeps_one_order }) => {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-upgrade-'));
  const env = {
    LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
    LUMIO_BLOBS__URL: join(folder, 'blobs'),
  };
  let database: TestDatabase;
  const lives: Lumio[] = [];

  const start = async (name: string, other?: typeof PREVIOUS) => {
    const data_dir = mkdtempSync(join(folder, name));
    // Both are told the same by their vendors.
    if (lives[0]) copyFileSync(join(lives[0].data_dir, 'dev-secrets.json'), join(data_dir, 'dev-secrets.json'));
    const lumio = await Lumio.start({ database_url: database.url, data_dir, env, program: other });
    lives.push(lumio);
    return lumio;
  };

  beforeAll(async () => {
    database = await emptyDatabase();
  });
  afterAll(async () => {
    for (const lumio of lives) await lumio.dispose();
    await database?.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('all that either of them acknowledged is there once, in order, live and in the log', async () => {
    // Its first start reads a setting that an ordinary role may not.
    await database.asAdmin(`grant pg_read_all_settings to ${ORDINARY_ROLE}`);
    const before = await start('before', program);
    await database.asAdmin(`revoke pg_read_all_settings from ${ORDINARY_ROLE}`);
    const of_before = new Traffic(before, { seed: SEED, name: 'before', pause_ms: 10, payments: 0, chat: 0 }).start();
    await until(async () => of_before.acked > 100, 'the build before to have work');

    const after = await start('after');
    const [heard_before, heard_after] = [await listen(before), await listen(after)];
    const of_after = new Traffic(after, { seed: SEED, name: 'after', pause_ms: 10, payments: 0, chat: 0 }).start();
    await until(async () => of_after.acked > 300, 'both to have worked beside each other');
    const acked = of_before.acked;
    await until(async () => of_before.acked > acked + 300, 'the build before to go on beside it');
    await key(before, after);
    await key(after, before);

    const sent_before = await of_before.stop();
    // The oldest release reads one order of ids, which this one keeps while a process of it is there.
    const { db } = database;
    const marks = await db.query(`select value from installation where name = 'outbox_one_order'`);
    expect(marks).toHaveLength(keeps_one_order ? 1 : 0);
    const seq = async () => (await db.query('select max(seq) as seq from channel_heads'))[0]!.seq as number;
    const reached = await seq();
    await until(() => [heard_before, heard_after].every((heard) => heard().at(-1)! >= reached), 'all to be heard');
    for (const heard of [heard_before, heard_after]) {
      const numbers = heard();
      expect(numbers.length).toBeGreaterThan(500);
      expect(numbers).toEqual(numbers.map((_, n) => numbers[0]! + n));
    }
    expect(await before.stop()).toBe(0);
    const alone = of_after.acked;
    await until(async () => of_after.acked > alone + 300, 'this build to go on alone');
    const sent = both(sent_before, await of_after.stop());
    expect(before.printed.unexcused([DEADLOCKED, NEWER_ROWS, TAKEN_OVER])).toEqual([]);
    await checkInvariant(after, sent, { excused: [] });
  });

  /** A client of this node on the account's events: the numbers of those that it got, in the order they came. */
  async function listen(node: Lumio): Promise<() => number[]> {
    const socket = await Client.open(node.ws_url, node.credentials.access_token);
    const channel = `events:${node.credentials.account_id}`;
    expect(await socket.subscribe(channel)).toMatchObject({ type: 'subscribed' });
    return () =>
      socket.messages
        .filter((message) => message.channel === channel && message.data !== undefined)
        .map(({ id }) => Number(id!.slice(id!.lastIndexOf('-') + 1)));
  }

  /** A key made by one is known to the other, and dead for the other once the one has removed it. */
  async function key(maker: Lumio, other: Lumio): Promise<void> {
    const api = new ApiClient(maker.base_url, maker.credentials.access_token);
    const made = await api.send('POST', '/v1/api-keys', { label: 'Short-lived', permissions: ['events:read'] });
    const with_key = new ApiClient(other.base_url, made.body.data.key);
    const status = async () => (await with_key.get('/v1/events?limit=1')).status;
    await until(async () => (await status()) === 200, 'the key to be known');
    expect((await api.send('DELETE', `/v1/api-keys/${made.body.data.id}`, undefined)).status).toBe(204);
    await promised(async () => (await status()) === 401 || undefined, 'the key to be dead', 5_000, probeOf(other));
  }
});
