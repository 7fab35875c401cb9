import { createPrivateKey, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, type Posted, VendorCloud } from '../support/vendor-cloud';
import { hmac, kickHeaders } from '../support/webhooks';

type Headers = Record<string, string>;

/** How one vendor's deliveries are made and signed here. */
interface Side {
  path: string;
  type: string;
  /** A good delivery; `person` is a JSON value or XML text that ends in the stored raw. */
  body(person: string, channel?: string): Buffer;
  sign(body: Buffer, id?: string): Headers;
  signature: string;
  /** The member of raw that `person` ends in. */
  stored(raw: any): unknown;
}

let server: TestServer;
let vendors: VendorCloud;
let api: ApiClient;
let sides: Record<string, Side>;

beforeAll(async () => {
  server = await startServer();
  vendors = new VendorCloud(server.base_url, server.credentials);
  api = new ApiClient(server.base_url, server.credentials.access_token);
  sides = sidesOf(server);
});
afterAll(() => server?.dispose());

const post = (side: Side, body: Buffer, headers: Headers) => vendors.post(side.path, body, headers);

/** Everything that deliveries can leave behind, after all that is under way has settled. */
async function traces(): Promise<{ events: number; parked: number }> {
  const flush = await vendors.kickFollow(1, `flush-${randomUUID()}`);
  expect(flush.status).toBe(200);
  const db = server.database!.db;
  const lag = async () => {
    const [row] = await db.query(
      `select (select count(*) from ledger where projection = 'event-log') as ingested, (select count(*) from platform_event_logs) as events`,
    );
    return row as { ingested: number; events: number };
  };
  const flushes = (flushed += 1);
  await eventually(async () => {
    const { body } = await api.get('/v1/events?types=kick:follower&user_id=1');
    return body._meta.total === flushes ? true : undefined;
  }, 'the flush');
  const { ingested, events } = await lag();
  expect(Number(ingested)).toBe(Number(events));
  const [parked] = await db.query('select count(*)::int as n from ingest_dead_letters');
  const [dead] = await db.query('select count(*)::int as n from dead_letters');
  expect(dead!.n).toBe(0);
  const { body } = await api.get('/v1/events?limit=1');
  return { events: body._meta.total - flushes, parked: parked!.n as number };
}
let flushed = 0;

function refused(answer: Posted, status: number, error: string): void {
  expect(answer.status).toBe(status);
  const body = JSON.parse(answer.text) as Record<string, unknown>;
  expect(Object.keys(body).filter((name) => name !== 'details')).toEqual(['error', 'message']);
  expect(body.error).toBe(error);
}

describe.each(['kick', 'trovo', 'youtube', 'shopify'])('%s', (vendor) => {
  let side: Side;
  beforeAll(() => {
    side = sides[vendor]!;
  });

  test('a delivery that is not the vendor’s, or not its bytes, is 401 and leaves nothing', async () => {
    const before = await traces();
    const body = side.body('"77"');
    const good = side.sign(body);
    const wrong = { ...good, [side.signature]: side.sign(side.body('"78"'))[side.signature]! };
    const without: Headers = { ...good };
    delete without[side.signature];
    const forged: [string, Buffer, Headers][] = [
      ['signature of another body', body, wrong],
      ['no signature', body, without],
      ['an empty signature', body, { ...good, [side.signature]: '' }],
      ['a signature that is no encoding', body, { ...good, [side.signature]: 'sha256=zz%00' }],
      ['one byte more', Buffer.concat([body, Buffer.from('\n')]), good],
      ['an empty body', Buffer.alloc(0), good],
    ];
    if (vendor !== 'youtube') {
      const written_anew = Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 2));
      forged.push(['written anew', written_anew, good]);
    }
    for (const [what, bytes, headers] of forged) {
      const answer = await post(side, bytes, headers);
      expect([what, answer.status]).toEqual([what, 401]);
      refused(answer, 401, 'UNAUTHORIZED');
    }
    expect(await traces()).toEqual(before);
  });

  test('a delivery that comes again is 200 each time and has one effect', async () => {
    const before = await traces();
    const body = side.body('"79"');
    const headers = side.sign(body);
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => post(side, body, headers)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect((await traces()).events).toBe(before.events + 1);
    expect((await post(side, body, headers)).status).toBe(200);
    expect(await traces()).toEqual({ ...before, events: before.events + 1 });
  });

  test('garbage with a valid signature is answered as specified, and kept where it is answered 200', async () => {
    const before = await traces();
    const garbage = [
      'no format at all {{<',
      '',
      '[]',
      'null',
      // Any object is an order to whoever names no members of it.
      ...(vendor === 'shopify' ? [] : ['{"broadcaster":{"user_id":{}},"type":[1]}', '\ufeff{"type":"channel.spell"}']),
    ].map((text, index) => Buffer.from(text === '' ? ' '.repeat(index) : text));
    garbage.push(
      Buffer.from([0xff, 0xfe, 0x00, 0x80, 0xc0]),
      Buffer.from('['.repeat(100_000)),
      Buffer.from('<a>'.repeat(50_000)),
    );
    const kept = vendor !== 'youtube';
    for (const body of garbage) {
      const answer = await post(side, body, side.sign(body));
      expect(answer.status).toBe(kept ? 200 : 400);
      expect(answer.text).toMatch(kept ? /^\{"success":true\}$/ : /"BAD_REQUEST"/);
    }
    const after = await traces();
    expect(after.events).toBe(before.events);
    expect(after.parked - before.parked).toBe(kept ? garbage.length : 0);
  });

  test('a body of 2 MiB is 413 in the table’s code, signed or not, announced or chunked', async () => {
    const before = await traces();
    const body = Buffer.alloc(2 * 1024 * 1024, 0x20);
    refused(await post(side, body, side.sign(body)), 413, 'BAD_REQUEST');
    refused(await chunked(side.path, body, side.sign(body)), 413, 'BAD_REQUEST');
    expect(await traces()).toEqual(before);
  });

  test('a channel or shop that nobody connected leaves nothing, and the answer does not tell', async () => {
    const before = await traces();
    const body = side.body('"80"', 'nobodys-channel');
    const headers = side.sign(body);
    // A shop's secret is its own: without the shop there is nothing to verify with.
    const of_nobody = { ...headers, ...(vendor === 'shopify' && { 'x-shopify-shop-domain': 'nobodys.myshopify.com' }) };
    const unknown = await post(side, body, of_nobody);
    const known_body = side.body('"81"');
    const known = await post(side, known_body, side.sign(known_body));
    expect(known.status).toBe(200);
    expect(unknown.status).toBe(vendor === 'shopify' ? 401 : 200);
    expect(unknown.text).toContain(vendor === 'shopify' ? '"UNAUTHORIZED"' : known.text);
    before.events += 1;
    expect(await traces()).toEqual(before);
  });

  test('NUL and lone surrogates in a signed payload become U+FFFD in the stored copy', async () => {
    const xml = vendor === 'youtube';
    const spelled = xml ? ['a\0b', 'a\ufffdb'] : ['"a\\u0000b\\ud800c\\\\u0000"', 'a\ufffdb\ufffdc\\u0000'];
    const body = side.body(spelled[0]!);
    // Bytes that are no text of any encoding, in the same place.
    const bytes = side.body(xml ? 'x\uffffy' : '"x\uffffy"');
    const bare = Buffer.concat(split(bytes, Buffer.from('\uffff'), Buffer.from([0x00, 0xff])));
    for (const one of [body, bare]) expect((await post(side, one, side.sign(one))).status).toBe(200);
    await traces();
    const stored = (await api.allEvents(`&types=${side.type}`)).map((row) => side.stored(row.raw));
    for (const copy of [spelled[1], 'x\ufffd\ufffdy']) expect(stored.filter((one) => one === copy)).toHaveLength(1);
  });
});

test('a Kick delivery outside the tolerance is 401, before and after', async () => {
  const before = await traces();
  const side = sides.kick!;
  const key = createPrivateKey(server.credentials.webhook_signing.kick_private_key);
  for (const seconds of [-86_400, -310, 400, 86_400]) {
    const body = side.body('"82"');
    const at = new Date(Date.now() + seconds * 1000).toISOString();
    refused(await post(side, body, kickHeaders(body, 'channel.followed', randomUUID(), at, key)), 401, 'UNAUTHORIZED');
  }
  for (const at of ['', 'yesterday', '0', '99999999999999999999', '2026-02-31T00:00:00Z']) {
    const body = side.body('"82"');
    refused(await post(side, body, kickHeaders(body, 'channel.followed', randomUUID(), at, key)), 401, 'UNAUTHORIZED');
  }
  expect(await traces()).toEqual(before);
});

test('the legacy Kick signature does not replace a wrong RSA one', async () => {
  const side = sides.kick!;
  const body = side.body('"83"');
  const legacy = hmac('sha256', server.credentials.webhook_signing.kick_secret, body, 'hex');
  const before = await traces();
  refused(
    await post(side, body, { ...side.sign(body), [side.signature]: 'AAAA', 'x-kick-signature': legacy }),
    401,
    'UNAUTHORIZED',
  );
  expect(await traces()).toEqual(before);
});

test('other methods and vendors without a webhook are refused without an effect', async () => {
  const get = await fetch(`${server.base_url}/v1/webhooks/kick`);
  expect([get.status, await get.json()]).toEqual([405, { error: 'BAD_REQUEST', message: 'Method not allowed' }]);
  const unknown = await vendors.post('/v1/webhooks/platformA', '{}', {});
  refused(unknown, 404, 'NOT_FOUND');
  const challenge = await fetch(`${server.base_url}/v1/webhooks/youtube?hub.challenge=<script>alert(1)</script>`);
  expect([
    challenge.status,
    challenge.headers.get('content-type'),
    challenge.headers.get('x-content-type-options'),
  ]).toEqual([200, 'text/plain; charset=utf-8', 'nosniff']);
});

test('too many forgeries from one address are 429, valid deliveries from it still 200', async () => {
  const side = sides.trovo!;
  const statuses = new Set<number>();
  for (let burst = 0; burst < 5; burst += 1) {
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => post(side, side.body('"84"'), { [side.signature]: 'ab'.repeat(32) })),
    );
    answers.forEach(({ status }) => statuses.add(status));
  }
  expect([...statuses].sort()).toEqual([401, 429]);
  const body = side.body('"85"');
  expect((await post(side, body, side.sign(body))).status).toBe(200);
});

describe('one captured body', () => {
  const legacy = (body: Buffer, headers: Headers = {}): Headers => ({
    'kick-event-type': 'channel.subscription.gifts',
    ...headers,
    'x-kick-signature': hmac('sha256', server.credentials.webhook_signing.kick_secret, body, 'hex'),
  });
  const gifts = () => {
    const { platform_channel_id } = server.credentials.connections.kick;
    return Buffer.from(
      `{"broadcaster":{"user_id":${platform_channel_id}},"gifter":{"user_id":5},"nonce":"${randomUUID()}"}`,
    );
  };

  /** Posts the body under each of the headers, twice; returns how many events came of it. `letters` are parked. */
  async function effects(path: string, body: Buffer, each: readonly Headers[], letters = 0): Promise<number> {
    const before = await traces();
    for (const headers of each) expect((await vendors.post(path, body, headers)).status).toBe(200);
    const answers = await Promise.all(each.map((headers) => vendors.post(path, body, headers)));
    expect(answers.map(({ status }) => status)).toEqual(each.map(() => 200));
    const after = await traces();
    expect(after.parked).toBe(before.parked + letters);
    return after.events - before.events;
  }

  test('under Kick’s legacy signature is one event, whatever id, time and type its headers say', async () => {
    const body = gifts();
    const headers = Array.from({ length: 4 }, () => ({ 'kick-event-message-id': randomUUID() }));
    const variants: Headers[] = [
      ...headers,
      { 'kick-event-message-timestamp': new Date().toISOString() },
      { 'kick-event-type': 'channel.followed', 'kick-event-message-id': randomUUID() },
    ];
    expect(
      await effects(
        '/v1/webhooks/kick',
        body,
        variants.map((one) => legacy(body, one)),
      ),
    ).toBe(1);
  });

  test('under Kick’s RSA signature has the id that the signature covers: two of them are two events', async () => {
    const body = gifts();
    const key = createPrivateKey(server.credentials.webhook_signing.kick_private_key);
    const sign = () => kickHeaders(body, 'channel.subscription.gifts', randomUUID(), new Date().toISOString(), key);
    expect(await effects('/v1/webhooks/kick', body, [sign(), sign()])).toBe(2);
  });

  test.each([
    ['with an id of its own', { message_id: randomUUID() }],
    ['without an id', {}],
  ])('of Trovo %s is one event, whatever the headers say', async (_how, id) => {
    const { connections, webhook_signing } = server.credentials;
    const { platform_channel_id: channel_id } = connections.trovo;
    const body = Buffer.from(JSON.stringify({ type: 'channel.spell', channel_id, nonce: randomUUID(), ...id }));
    const signature = hmac('sha256', webhook_signing.trovo_secret, body, 'hex');
    const headers = [undefined, randomUUID(), randomUUID()].map((given) => ({
      'x-trovo-signature': signature,
      ...(given && { 'x-trovo-message-id': given }),
    }));
    expect(await effects('/v1/webhooks/trovo', body, headers)).toBe(1);
  });

  test('of Shopify is one event of each type, and a sale only when it was paid', async () => {
    const { connections, webhook_signing } = server.credentials;
    const variants = (body: Buffer, topics: readonly string[]) =>
      topics.flatMap((topic) =>
        [1, 2, 3].map(() => ({
          'x-shopify-topic': topic,
          'x-shopify-shop-domain': connections.shopify.shop_domain,
          'x-shopify-event-id': randomUUID(),
          'x-shopify-webhook-id': randomUUID(),
          'x-shopify-hmac-sha256': hmac('sha256', webhook_signing.shopify_secret, body, 'base64'),
        })),
      );
    const order = (financial_status: string) => Buffer.from(JSON.stringify({ id: randomUUID(), financial_status }));
    const topics = ['orders/create', 'orders/paid'];
    const [open, paid] = [order('pending'), order('paid')];
    // A delivery named a sale that is none is parked under each of its headers, however often it comes.
    expect(await effects('/v1/webhooks/shopify', open, variants(open, topics), 3)).toBe(1);
    expect(await effects('/v1/webhooks/shopify', paid, variants(paid, topics))).toBe(2);
  });
});

/** The bytes with what is between them replaced. */
function split(bytes: Buffer, found: Buffer, by: Buffer): Buffer[] {
  const at = bytes.indexOf(found);
  return [bytes.subarray(0, at), by, bytes.subarray(at + found.length)];
}

/** Without a content-length: the server must count. */
function chunked(path: string, body: Buffer, headers: Headers): Promise<Posted> {
  return new Promise((done, fail) => {
    const req = request(`${server.base_url}${path}`, { method: 'POST', headers }, (res) => {
      let text = '';
      res.on('data', (chunk: Buffer) => (text += chunk.toString()));
      res.on('end', () => done({ status: res.statusCode!, text }));
    });
    let answered = false;
    req.once('response', () => (answered = true));
    req.on('error', (error) => (answered ? undefined : fail(error)));
    for (let at = 0; at < body.length; at += 65_536) req.write(body.subarray(at, at + 65_536));
    req.end();
  });
}

function sidesOf({ credentials }: TestServer): Record<string, Side> {
  const { connections, webhook_signing } = credentials;
  const key = createPrivateKey(webhook_signing.kick_private_key);
  const quoted = (text: string) => JSON.stringify(text);
  return {
    kick: {
      path: '/v1/webhooks/kick',
      type: 'kick:follower',
      signature: 'kick-event-signature',
      body: (person, channel) =>
        Buffer.from(
          `{"broadcaster":{"user_id":${quoted(channel ?? connections.kick.platform_channel_id)}},"follower":{"user_id":5,"username":${person}}}`,
        ),
      sign: (body, id = randomUUID()) => kickHeaders(body, 'channel.followed', id, new Date().toISOString(), key),
      stored: (raw) => raw.follower.username,
    },
    trovo: {
      path: '/v1/webhooks/trovo',
      type: 'trovo:spell',
      signature: 'x-trovo-signature',
      body: (person, channel) =>
        Buffer.from(
          `{"type":"channel.spell","channel_id":${quoted(channel ?? connections.trovo.platform_channel_id)},"nick_name":${person}}`,
        ),
      sign: (body) => ({ 'x-trovo-signature': hmac('sha256', webhook_signing.trovo_secret, body, 'hex') }),
      stored: (raw) => raw.nick_name,
    },
    youtube: {
      path: '/v1/webhooks/youtube',
      type: 'youtube:subscribe',
      signature: 'x-hub-signature-256',
      body: (person, channel) =>
        Buffer.from(
          `<feed xmlns:yt="http://www.youtube.com/xml/schemas/2015" xmlns="http://www.w3.org/2005/Atom"><entry>` +
            `<yt:videoId>video</yt:videoId><yt:channelId>${channel ?? connections.youtube.platform_channel_id}</yt:channelId>` +
            `<title>${person}</title><updated>2026-01-01T00:00:00.${(counter += 1)}Z</updated></entry></feed>`,
        ),
      sign: (body) => ({
        'content-type': 'application/atom+xml',
        'x-hub-signature-256': `sha256=${hmac('sha256', webhook_signing.youtube_secret, body, 'hex')}`,
      }),
      stored: (raw) => raw.title,
    },
    shopify: {
      path: '/v1/webhooks/shopify',
      type: 'shopify:order',
      signature: 'x-shopify-hmac-sha256',
      body: (person) => Buffer.from(`{"id":820982911946154508,"note":${person}}`),
      sign: (body, id = randomUUID()) => ({
        'x-shopify-topic': 'orders/create',
        'x-shopify-shop-domain': connections.shopify.shop_domain,
        'x-shopify-event-id': id,
        'x-shopify-hmac-sha256': hmac('sha256', webhook_signing.shopify_secret, body, 'base64'),
      }),
      stored: (raw) => raw.note,
    },
  };
}
let counter = 100;
