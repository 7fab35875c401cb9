import { type ParkedWebhooks, trimParkedWebhooks } from '../../ingest/runtime/parked/parked';
import { createFirstSubscriptions, trimFirstSubscriptions } from '../../ingest/kick/first-subscriptions';
import { retryParkedWebhook } from '../../ingest/runtime/parked/retry-parked';
import { webhookRoutes, type WebhookDeps } from '../../ingest/runtime/webhook/webhooks';
import { testDatabase, type TestDatabase } from '../support/database';
import { testParked } from '../support/parked';
import { keptLog } from '../support/log';
import * as support from '../support/webhooks';

const ACCOUNT = '01900000-0000-7000-8000-000000000001';
const OTHER = '01900000-0000-7000-8000-000000000002';
const SHOP = 'lumio-test.myshopify.com';
const NOW = Date.parse('2026-11-21T10:00:00Z');
const AT = '2026-11-21T09:59:58.123456789Z';
const OK = { status: 200, body: '{"success":true}' };

let database: TestDatabase;
let parked: ParkedWebhooks;
beforeAll(async () => {
  database = await testDatabase();
  parked = testParked(database.db);
});
afterAll(() => database.drop());

function setUp(settings: Partial<WebhookDeps['settings']['webhooks']> = {}) {
  const records = support.keptRecords();
  const log = keptLog();
  const metrics = support.keptMetrics();
  const accounts = {
    'kick:123456789': [ACCOUNT],
    'kick:54670000': [ACCOUNT, OTHER],
    'youtube:UCabcdefghijklmnopqrstuv': [ACCOUNT],
    'trovo:100000021': [ACCOUNT],
    [SHOP]: [ACCOUNT],
  };
  const connections = support.connectionsOf(accounts, support.signing.shop_secret);
  const deps = {
    settings: support.webhookSettings(settings),
    paypal: null,
    connections,
    records,
    parked,
    log,
    metrics,
    now: () => NOW,
  };
  const routes = webhookRoutes(deps);
  const deliver = (vendor: string, body: Buffer, headers: Record<string, string>) =>
    support.deliver(routes, `/v1/webhooks/${vendor}`, body, headers, NOW);
  return { deps, routes, deliver, records, log, metrics };
}

const follow = support.fixture('kick', 'channel.followed.json');
const kick = (body = follow, type = 'channel.followed', at = AT) =>
  support.kickHeaders(body, type, '01JX000000000000000000000A', at);
const refusal = (status: number, code: string) => expect.objectContaining({ status, code });

describe('a signed delivery of every fixture is understood', () => {
  const types = JSON.parse(support.fixture('kick', 'headers.json').toString()) as Record<
    string,
    Record<string, string>
  >;
  test.each(support.fixturesOf('kick', '.json').filter(([name]) => name !== 'headers.json'))(
    'kick %s',
    async (name, body) => {
      const { deliver, metrics } = setUp();
      const type = types[name]?.['Kick-Event-Type'] ?? 'chat.message.sent';
      await expect(deliver('kick', body, support.kickHeaders(body, type, `01JX-${name}`, AT))).resolves.toEqual(OK);
      // Judged by its content, never parked.
      const outcomes = ['stored', 'unmapped_type', 'unknown_account'];
      expect([...metrics.counts.keys()]).toEqual([expect.stringMatching(`kick (${outcomes.join('|')})$`)]);
    },
  );

  test.each(
    support.fixturesOf('youtube', '.xml').filter(([name]) => name !== 'feed.deleted_entry_without_channel.xml'),
  )('youtube %s', async (_name, body) => {
    const { deliver, metrics } = setUp();
    await expect(deliver('youtube', body, support.youtubeHeaders(body))).resolves.toEqual(OK);
    expect([...metrics.counts.keys()]).toEqual([expect.stringMatching(/youtube (stored|unknown_account)$/)]);
  });

  test.each(support.fixturesOf('shopify', '.json').filter(([name]) => !name.startsWith('api.')))(
    'shopify %s',
    async (name, body) => {
      const { deliver, records } = setUp();
      const topic = /^(orders|products)_(create|paid)/.exec(name)?.slice(1).join('/') ?? 'refunds/create';
      await expect(deliver('shopify', body, support.shopifyHeaders(body, topic, `evt-${name}`))).resolves.toEqual(OK);
      const paid = (JSON.parse(body.toString()) as { financial_status?: string }).financial_status === 'paid';
      const ours = topic !== 'refunds/create' && (topic !== 'orders/paid' || paid);
      expect(records.kept.map((record) => record.raw)).toEqual(ours ? [body.toString()] : []);
    },
  );

  test.each(support.fixturesOf('trovo', '.json').filter(([name]) => name.startsWith('channel.')))(
    'trovo %s',
    async (_name, body) => {
      const { deliver, records } = setUp();
      await expect(deliver('trovo', body, support.trovoHeaders(body))).resolves.toEqual(OK);
      expect(records.kept).toHaveLength(1);
    },
  );
});

test('the envelope says whose it is, when, and carries the received text and the trace', async () => {
  const { deliver, records } = setUp();
  await deliver('kick', follow, kick());
  expect(records.kept).toEqual([
    {
      topic: 'platform-events',
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      account_id: ACCOUNT,
      type: 'kick:follower',
      platform: 'kick',
      external_id: 'kick:01JX000000000000000000000A',
      occurred_at: '2026-11-21T09:59:58.123Z',
      received_at: '2026-11-21T10:00:00.000Z',
      subject: 'kick:987654321',
      raw: follow.toString(),
      trace: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    },
  ]);
});

test('what the signature covers is remembered with a parked delivery', async () => {
  await database.db.query('truncate ingest_dead_letters');
  const { deliver, records, deps } = setUp();
  const gift = support.fixture('kick', 'channel.subscription.gifts.json');
  const legacy = {
    'kick-event-message-id': 'legacy',
    'kick-event-type': 'channel.subscription.gifts',
    'lumio-id-signed': 'yes',
    'x-kick-signature': support.hmac('sha256', support.signing.settings.kick_secret, gift, 'hex'),
  };
  records.fail = Object.assign(new Error('invalid byte sequence'), { code: '22021' });
  await expect(
    deliver('kick', gift, support.kickHeaders(gift, 'channel.subscription.gifts', 'rsa', AT)),
  ).resolves.toEqual(OK);
  await expect(deliver('kick', gift, legacy)).resolves.toEqual(OK);
  records.fail = null;
  for (const { id } of await parked.list())
    await expect(retryParkedWebhook(id, { ...deps, parked })).resolves.toEqual({ status: 'retried', records: 1 });
  expect(records.kept.map(({ external_id, same_raw }) => [external_id, same_raw])).toEqual([
    ['kick:rsa', undefined],
    ['kick:legacy', 'once'],
  ]);
});

test('a channel that two accounts have connected gives each its record', async () => {
  const { deliver, records } = setUp();
  const body = support.fixture('kick', 'chat.message.sent.captured_minimal.json');
  await deliver('kick', body, kick(body, 'chat.message.sent'));
  expect(records.kept.map((record) => record.account_id)).toEqual([ACCOUNT, OTHER]);
  expect(new Set(records.kept.map((record) => record.id)).size).toBe(2);
});

test('a delivery for nobody here is accepted, logged and not kept', async () => {
  const { deliver, records, log, metrics } = setUp();
  const body = Buffer.from(follow.toString().replace('123456789', '999'));
  await expect(deliver('kick', body, kick(body))).resolves.toEqual(OK);
  expect(records.kept).toEqual([]);
  expect(log.lines).toEqual([
    expect.objectContaining({ facts: expect.objectContaining({ reason: 'unknown_account' }) }),
  ]);
  expect(metrics.counts.get('lumio_webhooks_total kick unknown_account')).toBe(1);
});

describe('deliveries of Kick count only by subscriptions of the accounts that have connected the channel', () => {
  const subscribed = (headers: Record<string, string>, id: string | null) =>
    id === null ? headers : { ...headers, 'kick-event-subscription-id': id };
  const account = (account_id: string, subscriptions: string[] | null) => ({
    ...{ account_id, subscriptions, secret: null },
  });

  function among(remembered: ReturnType<typeof account>[], stored = remembered) {
    const { deps, records, metrics } = setUp();
    const connections = {
      ...deps.connections,
      byChannel: async () => remembered,
      readByChannel: async () => stored,
    };
    const first_subscriptions = createFirstSubscriptions(database.db);
    const routes = webhookRoutes({ ...deps, connections, first_subscriptions });
    const deliver = (id: string | null, headers = kick()) =>
      support.deliver(routes, '/v1/webhooks/kick', follow, subscribed(headers, id), NOW);
    return { deliver, metrics, accounts: () => records.kept.map(({ account_id }) => account_id) };
  }

  test('another app is answered 200, counted and not kept', async () => {
    const { deliver, metrics, accounts } = among([account(ACCOUNT, ['ours']), account(OTHER, ['theirs'])]);
    await expect(deliver('foreign')).resolves.toEqual(OK);
    await expect(deliver(null)).resolves.toEqual(OK);
    expect(accounts()).toEqual([]);
    expect(metrics.counts.get('lumio_webhooks_total kick unknown_subscription')).toBe(2);
    await deliver('theirs');
    await deliver('ours');
    expect(accounts()).toEqual([OTHER, ACCOUNT]);
  });

  test('one that is newer than what is remembered, or is being made, is kept', async () => {
    const made = among([account(ACCOUNT, ['older'])], [account(ACCOUNT, ['newer'])]);
    await made.deliver('newer');
    const creating = among([account(ACCOUNT, ['older'])], [account(ACCOUNT, null)]);
    await creating.deliver('newer');
    expect([made.accounts(), creating.accounts()]).toEqual([[ACCOUNT], [ACCOUNT]]);
  });

  describe('without ids of its own', () => {
    const twin = (n: number) => support.kickHeaders(follow, 'channel.followed', `01JX-twin-${n}`, AT);
    const silent = (age: string) =>
      database.db.query(`update kick_first_subscriptions set seen_at = seen_at - interval '${age}'`);
    beforeEach(() => database.db.query('truncate kick_first_subscriptions'));

    test('the first subscription of a type wins, in every process, and others are counted', async () => {
      const first = among([account(ACCOUNT, null), account(OTHER, ['others'])]);
      await first.deliver('winner', twin(1));
      await expect(first.deliver('twin', twin(2))).resolves.toEqual(OK);
      await first.deliver('winner', twin(3));
      expect(first.accounts()).toEqual([ACCOUNT, ACCOUNT]);
      expect(first.metrics.counts.get('lumio_webhooks_total kick unknown_subscription')).toBe(1);
      const second = among([account(ACCOUNT, null), account(OTHER, ['others'])]);
      await second.deliver('twin', twin(2));
      await second.deliver('others', twin(4));
      await second.deliver('winner', twin(5));
      expect(second.accounts()).toEqual([OTHER, ACCOUNT]);
    });

    test('two first deliveries at once have one winner', async () => {
      const nodes = Array.from({ length: 4 }, () => among([account(ACCOUNT, null)]));
      await Promise.all(nodes.map((node, n) => node.deliver(`app-${n}`, twin(n))));
      expect(nodes.flatMap((node) => node.accounts())).toEqual([ACCOUNT]);
    });

    test('each type has its own winner', async () => {
      const { deliver, accounts } = among([account(ACCOUNT, null)]);
      await deliver('of-follows', twin(1));
      await deliver('of-subscribers', support.kickHeaders(follow, 'channel.subscription.new', '01JX-new', AT));
      expect(accounts()).toEqual([ACCOUNT, ACCOUNT]);
    });

    test('a winner that was silent for an hour gives way; a shorter silence changes nothing', async () => {
      await among([account(ACCOUNT, null)]).deliver('ended', twin(1));
      await silent('59 minutes');
      const early = among([account(ACCOUNT, null)]);
      await early.deliver('next', twin(2));
      expect(early.accounts()).toEqual([]);
      await silent('2 minutes');
      const late = among([account(ACCOUNT, null)]);
      await late.deliver('next', twin(3));
      await late.deliver('ended', twin(4));
      expect(late.accounts()).toEqual([ACCOUNT]);
    });

    test('a delivery without an id counts', async () => {
      const { deliver, accounts } = among([account(ACCOUNT, null)]);
      await deliver('winner', twin(1));
      await deliver(null, twin(2));
      expect(accounts()).toEqual([ACCOUNT, ACCOUNT]);
    });

    test('a winner without a delivery for a day is forgotten', async () => {
      await among([account(ACCOUNT, null)]).deliver('ended', twin(1));
      expect(await trimFirstSubscriptions(database.db)).toBe(0);
      await silent('25 hours');
      expect(await trimFirstSubscriptions(database.db)).toBe(1);
    });
  });

  test('the legacy secret is of one app alone: its deliveries need no subscription', async () => {
    const { deliver, accounts } = among([account(ACCOUNT, ['ours'])]);
    const hex = support.hmac('sha256', support.signing.settings.kick_secret, follow, 'hex');
    await deliver(null, { 'kick-event-type': 'channel.followed', 'x-kick-signature': hex } as never);
    expect(accounts()).toEqual([ACCOUNT]);
  });
});

test('a chat message of Kick has its own id, whichever delivery brings it', async () => {
  const { deliver, records } = setUp();
  const body = support.fixture('kick', 'chat.message.sent.captured_minimal.json');
  const { message_id } = JSON.parse(body.toString()) as { message_id: string };
  for (const delivery of ['01JX-first', '01JX-second'])
    await deliver('kick', body, support.kickHeaders(body, 'chat.message.sent', delivery, AT));
  expect(new Set(records.kept.map(({ external_id }) => external_id))).toEqual(new Set([`kick:${message_id}`]));
  expect(records.kept[0]!.former_id).toBe('kick:01JX-first');
});

test('a delivery for nobody here is parked while the read model of connections is behind its log', async () => {
  const { deps } = setUp();
  const db = await testDatabase();
  try {
    const waiting = testParked(db.db);
    let behind = true;
    const routes = webhookRoutes({ ...deps, parked: waiting, connectionsBehind: async () => behind });
    const body = Buffer.from(follow.toString().replace('123456789', '999'));
    const headers = (): Record<string, string> => ({ ...kick(body), 'kick-event-subscription-id': 'ours' });
    const deliver = () => support.deliver(routes, '/v1/webhooks/kick', body, headers(), NOW);
    await expect(deliver()).resolves.toEqual(OK);
    const [letter] = await waiting.list();
    expect(letter).toMatchObject({ vendor: 'kick', reason: 'connections_behind' });
    const early = await retryParkedWebhook(letter!.id, { ...deps, parked: waiting });
    expect(early).toMatchObject({ status: 'failed', reason: 'connections_behind' });
    behind = false;
    const known = {
      ...support.connectionsOf({}, support.signing.shop_secret),
      byChannel: async () => [{ account_id: ACCOUNT, secret: null, subscriptions: ['ours'] }],
    };
    const retried = await retryParkedWebhook(letter!.id, { ...deps, connections: known, parked: waiting });
    expect(retried).toEqual({ status: 'retried', records: 1 });
    await deliver();
    expect(await waiting.list()).toEqual([]);
  } finally {
    await db.drop();
  }
});

describe('what cannot be kept', () => {
  const letters = async () =>
    (await parked.list({ limit: 1000 })).map(({ vendor, reason, attempts }) => ({ vendor, reason, attempts }));
  beforeEach(() => database.db.query('truncate ingest_dead_letters'));

  test('signed garbage, NUL bytes and deep nesting never crash, and wait among the dead letters', async () => {
    const { deliver, records } = setUp();
    for (const text of ['garbage', '', '\0\0\0', '{"a":', '['.repeat(10_000) + ']'.repeat(10_000)]) {
      const body = Buffer.from(text);
      await expect(deliver('trovo', body, support.trovoHeaders(body))).resolves.toEqual(OK);
    }
    expect(records.kept).toEqual([]);
    expect((await letters()).map((letter) => letter.reason)).toEqual([
      'bad_json',
      'bad_json',
      'bad_json',
      'bad_json',
      'too_deep',
    ]);
  });

  test('NUL and lone surrogates are replaced in the stored copy', async () => {
    const { deliver, records } = setUp();
    const text =
      String.raw`{"type":"channel.spell","channel_id":"100000021","id":"1","a":"\u0000\ud83d\ud83d\ude00","b":"` +
      '\0' +
      '"}';
    const body = Buffer.concat([Buffer.from(text.slice(0, -2)), Buffer.from([0xff]), Buffer.from('"}')]);
    await expect(deliver('trovo', body, support.trovoHeaders(body))).resolves.toEqual(OK);
    const raw = records.kept[0]!.raw;
    expect(JSON.parse(raw)).toMatchObject({ a: '\ufffd\ufffd😀', b: '\ufffd\ufffd' });
    await expect(database.db.query('select $1::jsonb as stored', [raw])).resolves.toHaveLength(1);
  });

  test('what grows beyond a topic’s limit is parked', async () => {
    const { deliver } = setUp();
    const body = Buffer.concat([
      Buffer.from('{"type":"channel.spell","channel_id":"100000021","a":"'),
      Buffer.alloc(1_000_000, 0xff),
      Buffer.from('"}'),
    ]);
    await expect(deliver('trovo', body, support.trovoHeaders(body))).resolves.toEqual(OK);
    expect(await letters()).toEqual([{ vendor: 'trovo', reason: 'too_large', attempts: 1 }]);
  });

  test('the same dead delivery is counted, not kept twice; another type of the same bytes is another', async () => {
    const { deliver } = setUp();
    const body = Buffer.from('{}');
    for (const type of ['channel.followed', 'channel.followed', 'chat.message.sent']) {
      await expect(deliver('kick', body, kick(body, type))).resolves.toEqual(OK);
    }
    expect((await letters()).map((letter) => letter.attempts).sort()).toEqual([1, 2]);
  });

  test('no 2xx without the durable write: 503 with Retry-After, from log, lookup and dead letters alike', async () => {
    const away = refusal(503, 'DATABASE_ERROR');
    const { deliver, records, deps } = setUp();
    records.fail = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    await expect(deliver('kick', follow, kick())).rejects.toEqual(away);
    await expect(deliver('kick', follow, kick())).rejects.toMatchObject({ retry_after_seconds: expect.any(Number) });
    records.fail = null;
    await expect(deliver('kick', follow, kick())).resolves.toEqual(OK);

    const lost = () => Promise.reject(new Error('no connection'));
    const blind = webhookRoutes({ ...deps, connections: { byChannel: lost, readByChannel: lost, byShopDomain: lost } });
    const order = support.fixture('shopify', 'orders_create.sample_2025.json');
    await expect(support.deliver(blind, '/v1/webhooks/kick', follow, kick(), NOW)).rejects.toEqual(away);
    await expect(
      support.deliver(blind, '/v1/webhooks/shopify', order, support.shopifyHeaders(order, 'orders/create', 'e'), NOW),
    ).rejects.toEqual(away);
    const full = webhookRoutes({ ...deps, parked: { park: lost } });
    const garbage = Buffer.from('{');
    await expect(support.deliver(full, '/v1/webhooks/kick', garbage, kick(garbage), NOW)).rejects.toEqual(away);
  });

  test('a retry whose normaliser still throws is a failed retry, and the letter stays', async () => {
    const { deps, log } = setUp();
    // Any header that is no text makes every normaliser throw.
    const headers = { 'kick-event-type': 5 } as unknown as Record<string, string>;
    const reason = 'normaliser_failed';
    await parked.park({ vendor: 'kick', reason, detail: '', headers, raw_body: follow, trace: null, received_at: NOW });
    const letter = (await parked.list({ vendor: 'kick' })).find((one) => one.reason === reason)!;
    const failed = { status: 'failed', reason, detail: expect.stringMatching(/trim/) };
    await expect(retryParkedWebhook(letter.id, { ...deps, parked })).resolves.toEqual(failed);
    expect(await parked.get(letter.id)).toMatchObject({ status: 'parked', attempts: letter.attempts + 1, reason });
    expect(JSON.stringify(log.lines)).toContain('the normaliser of a vendor failed');
    await parked.settle(letter.id, 'dropped');
  });

  test('what the log can never take is parked, and a retry after the fix stores it as of its first receipt', async () => {
    const { deliver, records, deps } = setUp();
    records.fail = Object.assign(new Error('invalid byte sequence'), { code: '22021' });
    await expect(deliver('kick', follow, kick())).resolves.toEqual(OK);
    const [letter] = await parked.list();
    expect(letter).toMatchObject({
      vendor: 'kick',
      reason: 'not_storable',
      status: 'parked',
      headers: { 'kick-event-type': 'channel.followed' },
    });
    expect(JSON.stringify(letter)).not.toContain(kick()['kick-event-signature']);

    const retry = { ...deps, parked };
    await expect(retryParkedWebhook(letter!.id, retry)).resolves.toMatchObject({
      status: 'failed',
      reason: 'not_storable',
    });
    records.fail = null;
    await expect(retryParkedWebhook(letter!.id, retry)).resolves.toEqual({ status: 'retried', records: 1 });
    await expect(retryParkedWebhook(letter!.id, retry)).resolves.toEqual({ status: 'not_parked' });
    expect(records.kept).toEqual([
      expect.objectContaining({
        external_id: 'kick:01JX000000000000000000000A',
        received_at: '2026-11-21T10:00:00.000Z',
        raw: follow.toString(),
      }),
    ]);
    expect(await parked.list()).toEqual([]);
  });

  test('dead letters end: dropped by an operator, or trimmed by age', async () => {
    const { deliver } = setUp();
    const body = Buffer.from('?');
    await deliver('trovo', body, support.trovoHeaders(body));
    const [letter] = await parked.list();
    expect((await parked.get(letter!.id))!.raw_body).toEqual(body);
    expect(await parked.settle(letter!.id, 'dropped')).toBe(true);
    expect(await parked.settle(letter!.id, 'dropped')).toBe(false);
    await database.db.query(`update ingest_dead_letters set last_received_at = now() - interval '29 days'`);
    expect(await trimParkedWebhooks(database.db)).toBe(0);
    await database.db.query(`update ingest_dead_letters set last_received_at = now() - interval '31 days'`);
    expect(await trimParkedWebhooks(database.db)).toBe(1);
  });
});

test('a remark that repeats is logged once in a while, with the number left out', async () => {
  const { log, deps } = setUp();
  let now = NOW;
  deps.now = () => now;
  const again = webhookRoutes(deps);
  for (let count = 0; count < 5; count += 1) {
    await expect(support.deliver(again, '/v1/webhooks/trovo', Buffer.from('{}'), {}, NOW)).rejects.toMatchObject({
      status: 401,
    });
  }
  expect(log.lines).toHaveLength(1);
  now += 10_001;
  await expect(support.deliver(again, '/v1/webhooks/trovo', Buffer.from('{}'), {}, NOW)).rejects.toMatchObject({
    status: 401,
  });
  expect(log.lines[1]!.facts).toMatchObject({ left_out: 4 });
});

test('the routes are the specification’s', () => {
  const { routes } = setUp();
  expect(routes.map((route) => `${route.method} ${route.path}`)).toEqual([
    'GET /v1/webhooks/youtube',
    'POST /v1/webhooks/youtube',
    'POST /v1/webhooks/kick',
    'POST /v1/webhooks/trovo',
    'POST /v1/webhooks/shopify',
    'POST /v1/webhooks/stripe',
    'POST /v1/webhooks/stripe-connect',
    'POST /v1/webhooks/paypal-payouts',
  ]);
});
