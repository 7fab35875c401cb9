import fc from 'fast-check';
import { normaliseKick } from '../../ingest/kick/webhook';
import { readShopDomain } from '../../domain/billing/shop-domains';
import { normaliseShopify } from '../../ingest/shopify/webhook';
import { normaliseTrovo } from '../../ingest/trovo/webhook';
import { toDelivery, type DraftRecord, type Outcome } from '../../ingest/runtime/webhook/webhook';
import { normaliseYoutube } from '../../ingest/youtube/webhook';
import { fixture, fixturesOf } from '../support/webhooks';

const NOW = Date.parse('2026-11-21T10:00:00Z');
const delivery = (body: Buffer | string, headers: Record<string, string> = {}, id_signed = false) =>
  toDelivery(headers, Buffer.from(body), NOW, { id_signed });
const records = (outcome: Outcome): DraftRecord[] => {
  if (outcome.kind !== 'ok') throw new Error(`expected records, got ${JSON.stringify(outcome)}`);
  return outcome.records;
};
const one = (outcome: Outcome): DraftRecord => {
  const all = records(outcome);
  expect(all).toHaveLength(1);
  return all[0]!;
};

/** How a record is known again. */
const identityOf = ({ external_id, same_raw, former_id }: DraftRecord) => ({ external_id, same_raw, former_id });

describe('kick', () => {
  const headers = (type: string) => ({
    'kick-event-type': type,
    'kick-event-message-id': '01JX0000000000000000000001',
    'kick-event-message-timestamp': '2026-11-21T09:59:58Z',
  });
  const kick = (name: string, type: string) => normaliseKick(delivery(fixture('kick', name), headers(type), true));

  test.each([
    [
      'channel.followed.json',
      'channel.followed',
      'platform-events',
      'kick:follower',
      'kick:987654321',
      '2026-11-21T09:59:58.000Z',
    ],
    [
      'channel.subscription.new.json',
      'channel.subscription.new',
      'platform-events',
      'kick:subscribe',
      'kick:987654321',
      '2025-01-14T16:08:06.000Z',
    ],
    [
      'channel.subscription.renewal.json',
      'channel.subscription.renewal',
      'platform-events',
      'kick:subscribe',
      'kick:987654321',
      '2025-01-14T16:08:06.000Z',
    ],
    [
      'channel.subscription.gifts.json',
      'channel.subscription.gifts',
      'platform-events',
      'kick:gift',
      'kick:987654321',
      '2025-01-14T16:08:06.000Z',
    ],
    [
      'livestream.status.updated.started.json',
      'livestream.status.updated',
      'platform-events',
      'kick:stream_online',
      null,
      '2025-01-01T00:00:00.000Z',
    ],
    [
      'livestream.status.updated.started.json',
      'livestream.started',
      'platform-events',
      'kick:stream_online',
      null,
      '2025-01-01T00:00:00.000Z',
    ],
    [
      'livestream.status.updated.started.json',
      'livestream.ended',
      'platform-events',
      'kick:stream_offline',
      null,
      '2026-11-21T09:59:58.000Z',
    ],
    [
      'chat.message.sent.json',
      'chat.message.sent',
      'chat-events',
      'kick:chat',
      'kick:987654321',
      '2025-01-14T16:08:06.000Z',
    ],
    [
      'chat.message.sent.captured_minimal.json',
      'chat.message.sent',
      'chat-events',
      'kick:chat',
      'kick:54670000',
      '2026-11-21T09:59:58.000Z',
    ],
    [
      'moderation.banned.json',
      'moderation.banned',
      'chat-events',
      'kick:moderation',
      'kick:135790135',
      '2025-01-14T16:08:05.000Z',
    ],
  ])('%s as %s', (name, incoming, topic, type, subject, occurred_at) => {
    const record = one(kick(name, incoming));
    expect(record).toMatchObject({ topic, type, subject, occurred_at, platform: 'kick' });
    const turn = `${type.slice(5)}:123456789-1735689600`;
    const message_id = 'kick:01JX0000000000000000000001';
    const payload = fixture('kick', name).toString();
    const own_id =
      incoming === 'chat.message.sent'
        ? (JSON.parse(payload) as { message_id: string }).message_id
        : incoming.startsWith('livestream.') && turn;
    const identity = own_id ? { external_id: `kick:${own_id}`, former_id: message_id } : { external_id: message_id };
    expect(identityOf(record)).toEqual(identity);
    const kept = topic === 'chat-events' ? record.raw.slice(record.raw.indexOf(',"raw":') + 7, -1) : record.raw;
    expect(kept).toBe(payload);
  });

  test('everybody whom a payload names is named in the record', () => {
    expect(one(kick('channel.subscription.gifts.json', 'channel.subscription.gifts')).subjects).toEqual([
      'kick:561654654',
    ]);
    expect(one(kick('moderation.banned.json', 'moderation.banned')).subjects).toEqual(['kick:987654321']);
    expect(one(kick('chat.message.sent.json', 'chat.message.sent')).subjects).toEqual(['kick:12345']);
  });

  test.each([
    ['kicks.gifted.json', 'kicks.gifted'],
    ['channel.reward.redemption.updated.json', 'channel.reward.redemption.updated'],
  ])('%s as %s is not ours', (name, type) => {
    expect(kick(name, type)).toEqual({ kind: 'skip', reason: 'unmapped_type', detail: type });
  });

  test('a stream that ended is offline at its end', () => {
    const body = {
      ...JSON.parse(fixture('kick', 'livestream.status.updated.started.json').toString()),
      is_live: false,
      ended_at: '2026-11-20T23:00:00.123456789+01:00',
    };
    const outcome = normaliseKick(delivery(JSON.stringify(body), { 'kick-event-type': 'livestream.status.updated' }));
    expect(one(outcome)).toMatchObject({ type: 'kick:stream_offline', occurred_at: '2026-11-20T22:00:00.123Z' });
  });

  test('the begin and the end of a stream have the time of their message where the signature covers it, else their own', () => {
    const body = fixture('kick', 'livestream.status.updated.started.json');
    const sent = headers('livestream.status.updated');
    const reported_at = new Date(sent['kick-event-message-timestamp']).toISOString();
    expect(one(normaliseKick(delivery(body, sent, true)))).toMatchObject({ reported_at });
    const unsigned = one(normaliseKick(delivery(body, sent, false)));
    expect(unsigned.reported_at).toBe(unsigned.occurred_at);
    expect(unsigned.reported_at).not.toBe(reported_at);
    const follow = fixture('kick', 'channel.followed.json');
    expect(one(normaliseKick(delivery(follow, headers('channel.followed'), true)))).not.toHaveProperty('reported_at');
  });

  test.each(['broadcaster_user_id', 'channel_id'])('a legacy delivery may name the channel %s', (name) => {
    const body = JSON.stringify({ event: 'channel.followed', [name]: 123456789, follower: { user_id: 5 } });
    expect(one(normaliseKick(delivery(body)))).toMatchObject({
      type: 'kick:follower',
      owner: { kind: 'channel', platform: 'kick', channel_id: '123456789' },
      subject: 'kick:5',
    });
  });

  test('an anonymous gifter is nobody', () => {
    const body = JSON.parse(fixture('kick', 'channel.subscription.gifts.json').toString());
    body.gifter = { is_anonymous: true, user_id: null, username: null };
    expect(
      one(normaliseKick(delivery(JSON.stringify(body), { 'kick-event-type': 'channel.subscription.gifts' }))).subject,
    ).toBeNull();
  });

  test('under the legacy signature a chat message names itself, and anything else counts once for its bytes', () => {
    const chat = fixture('kick', 'chat.message.sent.json');
    expect(identityOf(one(normaliseKick(delivery(chat, headers('chat.message.sent')))))).toEqual({
      external_id: 'kick:unique_message_id_123',
      former_id: 'kick:01JX0000000000000000000001',
    });
    expect(
      identityOf(
        one(
          normaliseKick(
            delivery(fixture('kick', 'channel.subscription.gifts.json'), headers('channel.subscription.gifts')),
          ),
        ),
      ),
    ).toEqual({ external_id: 'kick:01JX0000000000000000000001', same_raw: 'once' });
  });

  test('without a message id the chat message names itself, and anything else its content', () => {
    const chat = fixture('kick', 'chat.message.sent.json');
    expect(identityOf(one(normaliseKick(delivery(chat, { 'kick-event-type': 'chat.message.sent' }))))).toEqual({
      external_id: 'kick:unique_message_id_123',
    });
    const follow = fixture('kick', 'channel.followed.json');
    const idOf = (timestamp: string) =>
      one(
        normaliseKick(
          delivery(follow, { 'kick-event-type': 'channel.followed', 'kick-event-message-timestamp': timestamp }),
        ),
      ).external_id;
    expect(idOf('2026-11-21T09:00:00Z')).toMatch(/^kick:content:[0-9a-f]{40}$/);
    expect(idOf('2026-11-21T09:00:00Z')).toBe(idOf('2026-11-21T09:00:00Z'));
    expect(idOf('2026-11-21T09:00:00Z')).not.toBe(idOf('2026-11-21T09:00:01Z'));
  });

  test.each([
    ['not JSON', 'bad_json'],
    ['', 'bad_json'],
    ['{}', 'bad_payload'],
    ['[]', 'bad_payload'],
    ['null', 'bad_payload'],
    ['{"broadcaster":[]}', 'bad_payload'],
    ['{"broadcaster":{"user_id":{}}}', 'bad_payload'],
    ['['.repeat(10_000) + ']'.repeat(10_000), 'too_deep'],
    ['{"a":'.repeat(10_000) + '1' + '}'.repeat(10_000), 'too_deep'],
  ])('odd body %# is parked', (body, reason) => {
    expect(normaliseKick(delivery(body, { 'kick-event-type': 'channel.followed' }))).toMatchObject({
      kind: 'park',
      reason,
    });
  });
});

describe('shopify', () => {
  const shopify = (body: Buffer | string, topic: string, more: Record<string, string> = {}) =>
    normaliseShopify(
      delivery(body, {
        'x-shopify-topic': topic,
        'x-shopify-shop-domain': ' Lumio-Test.MyShopify.com ',
        'x-shopify-event-id': 'evt-1',
        ...more,
      }),
    );

  test('an order keeps every digit', () => {
    const body = fixture('shopify', 'orders_create.sample_2025.json');
    const record = one(shopify(body, 'orders/create'));
    expect(record).toMatchObject({
      type: 'shopify:order',
      topic: 'platform-events',
      owner: { kind: 'shop', shop_domain: 'lumio-test.myshopify.com' },
      external_id: 'shopify:evt-1',
      occurred_at: '2022-01-01T00:00:00.000Z',
    });
    expect(record.raw).toBe(body.toString());
    expect(record.raw).toContain('820982911946154508');
  });

  test('ids beyond 2^53 name customer and order exactly', () => {
    const named = one(shopify('{"id":820982911946154508,"customer":{"id":115310627314723954}}', 'orders/create'));
    expect(named.subject).toBe('shopify:115310627314723954');
    const guest = one(
      normaliseShopify(
        delivery('{"id":820982911946154508}', {
          'x-shopify-topic': 'orders/create',
          'x-shopify-shop-domain': 'a.myshopify.com',
        }),
      ),
    );
    expect(guest).toMatchObject({
      subject: 'shopify:guest-order:820982911946154508',
      external_id: 'shopify:orders/create:820982911946154508',
    });
  });

  test('an order and its payment under one event id are two events', () => {
    const body = '{"id":820982911946154508,"financial_status":"paid"}';
    const [made, paid] = [one(shopify(body, 'orders/create')), one(shopify(body, 'orders/paid'))];
    expect([made.type, paid.type]).toEqual(['shopify:order', 'shopify:order_paid']);
    expect(identityOf(made)).toEqual({ external_id: 'shopify:evt-1', same_raw: 'once_per_type' });
    expect(identityOf(paid)).toEqual({ external_id: 'shopify:evt-1:orders/paid', same_raw: 'once_per_type' });
  });

  test.each(['{"id":1}', '{"financial_status":"pending"}', '{"financial_status":["paid"]}'])(
    'a header makes no sale of an order that is not paid: %s',
    (body) => expect(shopify(body, 'orders/paid')).toMatchObject({ kind: 'park', reason: 'not_paid' }),
  );

  test('a product without a creation time takes the trigger time', () => {
    const record = one(
      shopify(fixture('shopify', 'products_create.sample_2025.json'), 'products/create', {
        'x-shopify-triggered-at': '2026-11-21T09:00:00.123456Z',
      }),
    );
    expect(record).toMatchObject({ type: 'shopify:product', subject: null, occurred_at: '2026-11-21T09:00:00.123Z' });
  });

  test.each(fixturesOf('shopify', '.json').filter(([name]) => name.startsWith('other_topic')))(
    '%s is dropped, and parked under a topic that Shopify does not document',
    (_name, body) => {
      expect(shopify(body, 'refunds/create')).toMatchObject({ kind: 'skip', reason: 'unmapped_type' });
      expect(shopify(body, 'constructor')).toMatchObject({ kind: 'park', reason: 'unknown_type' });
    },
  );

  test.each([
    ['shop.myshopify.com', 'shop.myshopify.com'],
    [' HTTPS://Shop.MyShopify.com/admin ', 'shop.myshopify.com'],
    ['shop.myshopify.com.', 'shop.myshopify.com'],
    ['shop.myshopify.com:443', 'shop.myshopify.com'],
    ['shop', null],
    ['a b.com', null],
    ['', null],
  ])('shop domain %p', (header, expected) => expect(readShopDomain(header)).toBe(expected));
});

describe('youtube', () => {
  test.each([
    [
      'feed.new_or_updated.docs.xml',
      'CHANNEL_ID',
      'youtube:VIDEO_ID:2015-03-09T19:05:24.552394234+00:00',
      '2015-03-09T19:05:24.552Z',
      'Video title',
    ],
    [
      'feed.upload.captured_2025_oneline.xml',
      'UCfakefakefakefakefake02',
      'youtube:9udpR0QouHU:2025-05-01T20:49:41.29571003+00:00',
      '2025-05-01T20:49:41.295Z',
      'test 4',
    ],
    [
      'feed.escaped_title.xml',
      'UCabcdefghijklmnopqrstuv',
      'youtube:dQw4w9WgXcQ:2026-09-26T10:00:01.552394234+00:00',
      '2026-09-26T10:00:01.552Z',
      'Tom & Jerry <live>',
    ],
    [
      'feed.minimal_no_self_link.xml',
      'UCchannel',
      'youtube:abc123XYZ_-:2026-06-23T01:00:00+00:00',
      '2026-06-23T01:00:00.000Z',
      '주일예배 설교',
    ],
  ])('%s', (name, channel_id, external_id, occurred_at, title) => {
    const record = one(normaliseYoutube(delivery(fixture('youtube', name))));
    expect(record).toMatchObject({
      type: 'youtube:subscribe',
      platform: 'youtube',
      external_id,
      occurred_at,
      subject: `youtube:${channel_id}`,
      owner: { kind: 'channel', platform: 'youtube', channel_id },
    });
    expect(JSON.parse(record.raw)).toMatchObject({ channel_id, title });
    expect(Object.keys(JSON.parse(record.raw))).toEqual(['channel_id', 'video_id', 'title', 'published', 'updated']);
  });

  test('a tombstone is a notification too', () => {
    const record = one(normaliseYoutube(delivery(fixture('youtube', 'feed.deleted_entry.xml'))));
    expect(JSON.parse(record.raw)).toEqual({
      channel_id: 'UCabcdefghijklmnopqrstuv',
      video_id: 'dQw4w9WgXcQ',
      title: null,
      published: null,
      updated: '2026-09-26T11:00:00.1+00:00',
      deleted: true,
    });
    expect(record.occurred_at).toBe('2026-09-26T11:00:00.100Z');
  });

  const entry = (id: string, channel: string, title = 't') =>
    `<entry><yt:videoId>${id}</yt:videoId>${channel}<title>${title}</title><updated>2026-01-01T00:00:00Z</updated></entry>`;
  const feed = (inner: string, before = '') =>
    delivery(
      `${before}<feed xmlns:yt="http://www.youtube.com/xml/schemas/2015" xmlns="http://www.w3.org/2005/Atom">${inner}</feed>`,
    );

  test('several entries are several records, and one without a channel takes the other’s', () => {
    const all = records(normaliseYoutube(feed(entry('1e5', '<yt:channelId>UCa</yt:channelId>') + entry('b', ''))));
    expect(all.map((record) => record.external_id)).toEqual([
      'youtube:1e5:2026-01-01T00:00:00Z',
      'youtube:b:2026-01-01T00:00:00Z',
    ]);
    expect(all.map((record) => record.owner)).toEqual(
      Array(2).fill({ kind: 'channel', platform: 'youtube', channel_id: 'UCa' }),
    );
  });

  test('blanks before the XML declaration are no matter', () => {
    const feed = fixture('youtube', 'feed.upload.captured_2021.xml').toString().trimStart();
    const declared = feed.startsWith('<?xml') ? feed : `<?xml version="1.0" encoding="UTF-8"?>\n${feed}`;
    expect(one(normaliseYoutube(delivery(`\n  ${declared}`)))).toEqual(one(normaliseYoutube(delivery(declared))));
  });

  test('titles of many entities and CDATA are read', () => {
    const title = '&#x1F600;&amp;'.repeat(3000);
    const record = one(normaliseYoutube(feed(entry('a', '<yt:channelId>UCa</yt:channelId>', title))));
    expect(JSON.parse(record.raw).title).toBe('😀&'.repeat(3000));
    const cdata = one(
      normaliseYoutube(feed(entry('a', '<yt:channelId>UCa</yt:channelId>', '<![CDATA[<!DOCTYPE & <b>]]>'))),
    );
    expect(JSON.parse(cdata.raw).title).toBe('<!DOCTYPE & <b>');
  });

  test.each([
    ['tombstone without a channel', delivery(fixture('youtube', 'feed.deleted_entry_without_channel.xml'))],
    ['entry without a channel', feed(entry('a', ''))],
    ['nothing', delivery('')],
    ['text', delivery('hello')],
    ['JSON', delivery('{"a":1}')],
    ['another document', delivery('<html><body/></html>')],
    ['an unclosed element', delivery('<feed><entry></feed>')],
    ['a document type', feed(entry('a', '<yt:channelId>UCa</yt:channelId>'), '<!DOCTYPE feed [<!ENTITY x "y">]>')],
    ['deep nesting', delivery('<feed>' + '<a>'.repeat(5000) + '</a>'.repeat(5000) + '</feed>')],
    ['a hostile name', feed('<__proto__><channelId>UCa</channelId></__proto__>')],
    ['unclosed sections', delivery('<![CDATA['.repeat(50_000))],
  ])('%s is refused', (_name, what) => expect(normaliseYoutube(what).kind).toBe('refuse'));
});

describe('trovo', () => {
  test('a subscription, flat', () => {
    expect(one(normaliseTrovo(delivery(fixture('trovo', 'channel.subscribe.json'))))).toMatchObject({
      type: 'trovo:subscribe',
      external_id: 'trovo:1754046000_100000021_sub_1',
      subject: 'trovo:100000077',
      occurred_at: '2026-08-01T11:00:00.000Z',
      owner: { kind: 'channel', platform: 'trovo', channel_id: '100000021' },
    });
  });

  test.each([
    ['{"message_id":"b"}', 'h', { external_id: 'trovo:b', former_id: 'trovo:h' }],
    ['{"data":{"eid":7}}', ' 7 ', { external_id: 'trovo:7' }],
    ['{"id":"b"}', undefined, { external_id: 'trovo:b' }],
    ['{}', 'h', { external_id: 'trovo:h', same_raw: 'once' }],
    ['{}', undefined, { external_id: expect.stringMatching(/^trovo:content:/), same_raw: 'once' }],
  ])('the signed body %s goes before the header %s', (ids, header, identity) => {
    const body = JSON.stringify({ type: 'channel.spell', channel_id: '1', ...JSON.parse(ids) });
    const headers = header === undefined ? undefined : { 'x-trovo-message-id': header };
    expect(identityOf(one(normaliseTrovo(delivery(body, headers))))).toEqual(identity);
  });

  test('a spell, as the chat socket lays it out', () => {
    expect(one(normaliseTrovo(delivery(fixture('trovo', 'channel.spell.json'))))).toMatchObject({
      type: 'trovo:spell',
      external_id: 'trovo:1754046123_100000021',
      subject: 'trovo:100000078',
      occurred_at: '2026-08-01T11:02:03.000Z',
      owner: { kind: 'channel', platform: 'trovo', channel_id: '100000021' },
    });
  });

  test.each([
    [{ type: 'notification', event: { type: 'channel.spell', channel: { id: 7 } } }],
    [{ subscription: { type: 'channel.spell' }, event: { channel_id: '7' } }],
    [{ event: 'channel.spell', channel_info: { channel_id: '7' }, data: {} }],
  ])('%j names its channel', (body) => {
    expect(one(normaliseTrovo(delivery(JSON.stringify(body)))).owner).toEqual({
      kind: 'channel',
      platform: 'trovo',
      channel_id: '7',
    });
  });

  test('anything else is parked', () => {
    const chat = '{"type":"CHAT","channel_info":{"channel_id":"1"}}';
    expect(normaliseTrovo(delivery(chat))).toMatchObject({ kind: 'park', reason: 'unknown_type' });
    expect(normaliseTrovo(delivery('{"type":"channel.spell"}'))).toMatchObject({ kind: 'park', reason: 'bad_payload' });
    expect(normaliseTrovo(delivery('{"channel_id":"1"}'))).toMatchObject({ kind: 'park', reason: 'no_event_type' });
    expect(normaliseTrovo(delivery('7'))).toMatchObject({ kind: 'park', reason: 'bad_payload' });
  });
});

test('no normaliser throws, whatever the body', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json({ maxDepth: 4 })), (body) => {
      normaliseKick(delivery(body, { 'kick-event-type': 'channel.followed' }));
      normaliseTrovo(delivery(body));
      normaliseYoutube(delivery(body));
      normaliseShopify(
        delivery(body, { 'x-shopify-topic': 'orders/create', 'x-shopify-shop-domain': 'a.myshopify.com' }),
      );
    }),
    { numRuns: 300 },
  );
});
