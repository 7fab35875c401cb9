import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  hmacMatches,
  isFresh,
  prefixedSignature,
  publicKeys,
  secretList,
} from '../../ingest/runtime/webhook/signatures';
import { webhookRoutes, type WebhookDeps } from '../../ingest/runtime/webhook/webhooks';
import { silentLog } from '../support/log';
import * as support from '../support/webhooks';

const ACCOUNT = '01900000-0000-7000-8000-000000000001';
const SHOP = 'lumio-test.myshopify.com';
const NOW = Date.parse('2026-11-21T10:00:00Z');
const AT = '2026-11-21T09:59:58.123456789Z';
const OK = { status: 200, body: '{"success":true}' };

function setUp(settings: Partial<WebhookDeps['settings']['webhooks']> = {}) {
  const records = support.keptRecords();
  const accounts = {
    'kick:123456789': [ACCOUNT],
    'youtube:UCabcdefghijklmnopqrstuv': [ACCOUNT],
    'trovo:100000021': [ACCOUNT],
    [SHOP]: [ACCOUNT],
  };
  const routes = webhookRoutes({
    settings: support.webhookSettings(settings),
    paypal: null,
    connections: support.connectionsOf(accounts, support.signing.shop_secret),
    records,
    parked: { park: () => Promise.reject(new Error('nothing here is parked')) },
    log: silentLog,
    metrics: support.keptMetrics(),
    now: () => NOW,
  });
  const deliver = (vendor: string, body: Buffer, headers: Record<string, string>) =>
    support.deliver(routes, `/v1/webhooks/${vendor}`, body, headers, NOW);
  return { routes, deliver, records };
}

const follow = support.fixture('kick', 'channel.followed.json');
const kick = (body = follow, type = 'channel.followed', at = AT) =>
  support.kickHeaders(body, type, '01JX000000000000000000000A', at);
const reserialised = (body: Buffer) => Buffer.from(JSON.stringify(JSON.parse(body.toString())));
const refusal = (status: number, code: string) => expect.objectContaining({ status, code });

describe('kick signatures', () => {
  test.each([
    ['a body serialised again', reserialised(follow), kick()],
    ['one byte more', Buffer.concat([follow, Buffer.from('\n')]), kick()],
    ['another message id', follow, { ...kick(), 'kick-event-message-id': '01JX000000000000000000000B' }],
    ['another timestamp', follow, { ...kick(), 'kick-event-message-timestamp': '2026-11-21T09:59:59Z' }],
    ['no message id', follow, { ...kick(), 'kick-event-message-id': '' }],
    ['garbage for a signature', follow, { ...kick(), 'kick-event-signature': '!!!' }],
    ['an empty signature', follow, { ...kick(), 'kick-event-signature': '' }],
    ['no signature at all', follow, { 'kick-event-type': 'channel.followed' }],
    ['five minutes and a second old', follow, kick(follow, 'channel.followed', '2026-11-21T09:54:59Z')],
    ['five minutes and a second ahead', follow, kick(follow, 'channel.followed', '2026-11-21T10:05:01Z')],
    ['a Unix time too long ago', follow, kick(follow, 'channel.followed', String(NOW / 1000 - 301))],
    ['a timestamp that is none', follow, kick(follow, 'channel.followed', 'yesterday')],
    [
      'another key',
      follow,
      support.kickHeaders(
        follow,
        'channel.followed',
        'x',
        AT,
        generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
      ),
    ],
    [
      'a wrong RSA signature beside a right legacy one',
      follow,
      {
        ...kick(),
        'kick-event-signature': 'AAAA',
        'x-kick-signature': support.hmac('sha256', 'kick-legacy-secret', follow, 'hex'),
      },
    ],
    ['a wrong legacy signature', follow, { 'x-kick-signature': support.hmac('sha256', 'wrong', follow, 'hex') }],
  ])('%s is 401 and keeps nothing', async (_name, body, headers) => {
    const { deliver, records } = setUp();
    await expect(deliver('kick', body, headers)).rejects.toEqual(refusal(401, 'UNAUTHORIZED'));
    expect(records.kept).toEqual([]);
  });

  test.each([
    '2026-11-21T09:55:00Z',
    '2026-11-21T10:05:00Z',
    '2026-11-21T11:00:00.5+01:00',
    String(NOW),
    String(NOW / 1000),
  ])('%s is fresh', async (at) => {
    const { deliver } = setUp();
    await expect(deliver('kick', follow, kick(follow, 'channel.followed', at))).resolves.toEqual(OK);
  });

  test('a time of exactly 300 seconds counts, whatever part of the next second has passed', () => {
    const signed = String(NOW / 1000);
    for (const [now, fresh] of [
      [NOW + 300_000, true],
      [NOW + 300_999, true],
      [NOW + 301_000, false],
      [NOW - 300_000, true],
      [NOW - 300_001, false],
    ] as const)
      expect([now - NOW, isFresh(signed, now)]).toEqual([now - NOW, fresh]);
  });

  test('the legacy signature counts where there is no other', async () => {
    const { deliver, records } = setUp();
    const legacy = {
      'x-kick-signature': support.hmac('sha256', 'kick-legacy-secret', follow, 'hex'),
      'kick-event-type': 'channel.followed',
    };
    await expect(deliver('kick', follow, legacy)).resolves.toEqual(OK);
    expect(records.kept).toHaveLength(1);
  });

  test('an unset key is 403 while signatures are required, and no matter otherwise', async () => {
    const unset = { kick_public_key: '', kick_secret: '' };
    const unsigned: Record<string, string>[] = [
      kick(),
      { 'kick-event-type': 'channel.followed' },
      { 'x-kick-signature': 'aa' },
    ];
    for (const headers of unsigned) {
      await expect(setUp(unset).deliver('kick', follow, headers)).rejects.toEqual(refusal(403, 'FORBIDDEN'));
    }
    await expect(setUp({ kick_public_key: '' }).deliver('kick', follow, kick())).rejects.toEqual(
      refusal(403, 'FORBIDDEN'),
    );
    await expect(setUp({ ...unset, require_signatures: false }).deliver('kick', follow, kick())).resolves.toEqual(OK);
    const set = setUp({ require_signatures: false });
    await expect(set.deliver('kick', reserialised(follow), kick())).rejects.toEqual(refusal(401, 'UNAUTHORIZED'));
  });

  test('two keys overlap while they are exchanged', async () => {
    const fresh = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = fresh.publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const { deliver } = setUp({
      kick_public_key: `${support.signing.settings.kick_public_key}\n${pem}`.replaceAll('\n', '\\n'),
    });
    await expect(deliver('kick', follow, kick())).resolves.toEqual(OK);
    await expect(
      deliver('kick', follow, support.kickHeaders(follow, 'channel.followed', 'y', AT, fresh.privateKey)),
    ).resolves.toEqual(OK);
  });

  test('a key that is none stops the start with its name; the published one is read', () => {
    expect(() => setUp({ kick_public_key: 'nonsense' })).toThrow('webhooks.kick_public_key');
    expect(
      publicKeys(readFileSync(join(__dirname, '../fixtures/kick/kick-public-key.pem'), 'utf8'), 'key'),
    ).toHaveLength(1);
  });
});

describe('youtube', () => {
  const body = support.fixture('youtube', 'feed.escaped_title.xml');
  const sign = (algorithm: string, secret = 'youtube-secret') =>
    `${algorithm}=${support.hmac(algorithm, secret, body, 'hex')}`;

  test.each([
    { 'x-hub-signature': sign('sha1') },
    { 'x-hub-signature': sign('sha256') },
    { 'x-hub-signature': sign('sha512').toUpperCase() },
    { 'x-hub-signature-256': sign('sha256') },
    { 'x-hub-signature-256': sign('sha256'), 'x-hub-signature': 'sha1=00' },
  ])('%j is right', async (headers) => {
    const { deliver, records } = setUp();
    await expect(deliver('youtube', body, headers as Record<string, string>)).resolves.toEqual(OK);
    expect(records.kept).toHaveLength(1);
  });

  test.each([
    {},
    { 'x-hub-signature': '' },
    { 'x-hub-signature': sign('sha1', 'wrong') },
    { 'x-hub-signature': sign('sha1').slice(5) },
    { 'x-hub-signature': `md5=${'0'.repeat(32)}` },
    { 'x-hub-signature': sign('sha1').slice(0, -2) },
    { 'x-hub-signature-256': sign('sha256', 'wrong'), 'x-hub-signature': sign('sha1') },
    { 'x-hub-signature-256': sign('sha1') },
  ])('%j is 401', async (headers) => {
    const { deliver } = setUp();
    await expect(deliver('youtube', body, headers as Record<string, string>)).rejects.toEqual(
      refusal(401, 'UNAUTHORIZED'),
    );
  });

  test('an unset secret is 401 while signatures are required', async () => {
    await expect(setUp({ youtube_secret: '' }).deliver('youtube', body, {})).rejects.toEqual(
      refusal(401, 'UNAUTHORIZED'),
    );
    await expect(
      setUp({ youtube_secret: '', require_signatures: false }).deliver('youtube', body, {}),
    ).resolves.toEqual(OK);
  });

  test.each([support.fixture('youtube', 'feed.deleted_entry_without_channel.xml'), Buffer.from('no XML')])(
    'unreadable Atom is 400',
    async (bad) => {
      const { deliver } = setUp();
      await expect(deliver('youtube', bad, support.youtubeHeaders(bad))).rejects.toEqual(refusal(400, 'BAD_REQUEST'));
      await expect(deliver('youtube', bad, {})).rejects.toEqual(refusal(401, 'UNAUTHORIZED'));
    },
  );

  test('the challenge comes back as text', async () => {
    const route = setUp().routes.find((candidate) => candidate.method === 'GET')!;
    const ask = (query: Record<string, string>) =>
      route.handle({ headers: {}, query, raw_body: Buffer.alloc(0), received_at: NOW, ip: '192.0.2.1', trace: null });
    await expect(ask({ 'hub.mode': 'subscribe', 'hub.challenge': '<b>14278</b>' })).resolves.toMatchObject({
      status: 200,
      body: '<b>14278</b>',
      content_type: expect.stringMatching(/^text\/plain/),
    });
    await expect(ask({ 'hub.mode': 'denied', 'hub.reason': 'gone' })).resolves.toMatchObject({ status: 200 });
    await expect(ask({})).rejects.toEqual(refusal(400, 'BAD_REQUEST'));
  });
});

describe('trovo and shopify signatures', () => {
  const spell = support.fixture('trovo', 'channel.spell.json');
  const order = support.fixture('shopify', 'orders_create.sample_2025.json');

  test('trovo: right, wrong, missing, unset, several', async () => {
    await expect(
      setUp({ trovo_secret: 'new, trovo-secret' }).deliver('trovo', spell, support.trovoHeaders(spell)),
    ).resolves.toEqual(OK);
    for (const headers of [{}, { 'x-trovo-signature': 'zz' }, support.trovoHeaders(reserialised(spell))]) {
      await expect(setUp().deliver('trovo', spell, headers)).rejects.toEqual(refusal(401, 'UNAUTHORIZED'));
    }
    await expect(setUp({ trovo_secret: '' }).deliver('trovo', spell, {})).rejects.toEqual(refusal(401, 'UNAUTHORIZED'));
    await expect(setUp({ trovo_secret: '', require_signatures: false }).deliver('trovo', spell, {})).resolves.toEqual(
      OK,
    );
  });

  test('shopify: the secret is the shop’s own', async () => {
    const { deliver, records } = setUp();
    const headers = support.shopifyHeaders(order, 'orders/create', 'evt-1', 'Lumio-Test.myshopify.com');
    await expect(deliver('shopify', order, headers)).resolves.toEqual(OK);
    expect(records.kept[0]!.raw).toBe(order.toString());
    for (const wrong of [
      { ...headers, 'x-shopify-hmac-sha256': support.hmac('sha256', 'wrong', order, 'base64') },
      { ...headers, 'x-shopify-hmac-sha256': '' },
      { ...headers, 'x-shopify-shop-domain': 'another.myshopify.com' },
      { ...headers, 'x-shopify-shop-domain': '' },
    ]) {
      await expect(deliver('shopify', order, wrong)).rejects.toEqual(refusal(401, 'UNAUTHORIZED'));
    }
    await expect(deliver('shopify', reserialised(order), headers)).rejects.toEqual(refusal(401, 'UNAUTHORIZED'));
    expect(records.kept).toHaveLength(1);
  });

  test('lists, encodings and prefixes', () => {
    expect(secretList(' ')).toEqual([]);
    expect(secretList('a')).toEqual(['a']);
    expect(secretList('a, b')).toEqual(['a, b', 'a', 'b']);
    const signature = support.hmac('sha256', 's', spell, 'hex');
    expect(hmacMatches('sha256', 'hex', ['x', 's'], spell, signature.toUpperCase())).toBe(true);
    expect(hmacMatches('sha256', 'hex', [], spell, signature)).toBe(false);
    const made = jest.spyOn(jest.requireActual<typeof import('node:crypto')>('node:crypto'), 'createHmac');
    expect(hmacMatches('sha256', 'hex', ['s'], spell, ['00', 'zz', signature])).toBe(true);
    expect(hmacMatches('sha256', 'hex', ['s'], spell, ['00'.repeat(32), '11'.repeat(32)])).toBe(false);
    expect(hmacMatches('sha256', 'hex', ['s'], spell, ['', 'zz'])).toBe(false);
    // However many are presented, the body is gone through once for each secret.
    expect(made).toHaveBeenCalledTimes(2);
    made.mockRestore();
    expect(hmacMatches('sha256', 'hex', ['s'], spell, `${signature}zz`)).toBe(false);
    expect(hmacMatches('sha256', 'hex', ['s'], spell, 'a'.repeat(100_000))).toBe(false);
    expect(prefixedSignature('SHA256=AB')).toEqual({ algorithm: 'sha256', hex: 'AB' });
    expect(prefixedSignature('sha256')).toBeNull();
  });
});
