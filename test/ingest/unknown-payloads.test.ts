import { VENDORS } from '../../domain/common/vendors';
import { normaliseDiscord } from '../../ingest/discord/members';
import { normaliseKick } from '../../ingest/kick/webhook';
import { normalisePaypal } from '../../ingest/paypal/webhook';
import { toDelivery } from '../../ingest/runtime/webhook/webhook';
import { normaliseShopify } from '../../ingest/shopify/webhook';
import { normaliseSpotify } from '../../ingest/spotify/adapter';
import { normaliseTips } from '../../ingest/streamelements/tips';
import { CONNECT, normaliseStripe, PLATFORM } from '../../ingest/stripe/webhook';
import { normaliseTrovoChat } from '../../ingest/trovo/chat';
import { normaliseTrovo } from '../../ingest/trovo/webhook';
import { normaliseTwitch } from '../../ingest/twitch/normalise';
import { normaliseYoutubeChat } from '../../ingest/youtube/chat';
import { connection, door, NOW, read, WEBHOOKS } from '../support/payloads';
import { twitchFrame } from '../support/twitch-frames';

const posted = (body: unknown, headers: Record<string, string> = {}) =>
  toDelivery(headers, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), NOW, { id_signed: true });
const said = (value: unknown) => ({
  text: typeof value === 'string' ? value : JSON.stringify(value),
  received_at: NOW,
});
const json = (vendor: string, file: string) => JSON.parse(read(vendor, file).toString());

const kick = (type: string, version = '1', body: unknown = json('kick', 'channel.followed.json')) =>
  normaliseKick(posted(body, { 'kick-event-type': type, 'kick-event-version': version }));
const shopify = (topic: string, body: unknown) =>
  normaliseShopify(posted(body, { 'x-shopify-topic': topic, 'x-shopify-shop-domain': 'a.myshopify.com' }));
const tip = (of: object, more: object = {}) => {
  const frame = json('streamelements', 'channel.tips.json');
  return normaliseTips(said({ ...frame, data: { ...frame.data, ...of }, ...more }), connection('c'));
};
const frame = (metadata: object, payload?: unknown) => {
  const whole = JSON.parse(twitchFrame('channel.chat.message.v1.body.json'));
  return said({ metadata: { ...whole.metadata, ...metadata }, payload: payload ?? whole.payload });
};
const treated = (low_trust_status: string) => {
  const whole = JSON.parse(twitchFrame('channel.suspicious_user.update.restricted.event.json'));
  return said({ ...whole, payload: { ...whole.payload, event: { ...whole.payload.event, low_trust_status } } });
};
const youtube = (snippet: object) =>
  normaliseYoutubeChat(said({ id: 'i', snippet, authorDetails: { channelId: 'UCx' } }), connection('UCa'));
const trovo = (item: unknown) => normaliseTrovoChat(said(item), connection('100'));
const twitch = (received: ReturnType<typeof said>) => normaliseTwitch({ ...received, age_ms: 0 }, connection('1'));

/** Payloads of each vendor that name what nobody here knows: a type, a version, a state or a shape. */
const UNKNOWN: Readonly<Record<(typeof VENDORS)[number], Readonly<Record<string, () => unknown>>>> = {
  twitch: {
    'message type': () => twitch(frame({ message_type: 'notification_v2' })),
    'subscription type': () => twitch(frame({ subscription_type: 'hologram.shown' })),
    'shape of the event': () => twitch(frame({}, { event: [] })),
    'treatment of a person': () => twitch(treated('sent_to_the_moon')),
  },
  youtube: {
    'kind of item': () => youtube({ type: 'someFutureEvent' }),
    'shape of an item': () => youtube({}),
  },
  kick: {
    type: () => kick('channel.someFutureEvent'),
    version: () => kick('channel.followed', '2'),
    'shape of the payload': () => kick('channel.followed', '1', []),
    'state of a stream': () =>
      kick('livestream.status.updated', '1', { broadcaster: { user_id: 1 }, is_live: 'maybe' }),
  },
  trovo: {
    'kind of item': () => trovo({ type: 5099, message_id: '1' }),
    'shape of an item': () => trovo({ type: {} }),
    'type of a webhook': () => normaliseTrovo(posted({ type: 'channel.someFutureEvent', channel_id: '1' })),
    'shape of a webhook': () => normaliseTrovo(posted('[]')),
  },
  spotify: {
    change: () => normaliseSpotify(said({ action: 'explode', to: '', count: 1, raw: {} }), connection('c')),
  },
  shopify: {
    topic: () => shopify('holograms/create', { id: 1 }),
    'state of a paid order': () => shopify('orders/paid', { id: 1, financial_status: 'pending' }),
    'shape of an order': () => shopify('orders/create', []),
  },
  stripe: {
    type: () => normaliseStripe(posted({ id: 'evt_1', type: 'hologram.shown' }), PLATFORM),
    'type of a connected account': () => normaliseStripe(posted({ id: 'evt_1', type: 'hologram.shown' }), CONNECT),
    'shape of the object': () =>
      normaliseStripe(posted({ id: 'evt_1', type: 'checkout.session.completed', data: [] }), PLATFORM),
  },
  paypal: {
    type: () => normalisePaypal(posted({ id: 'WH-1', event_type: 'HOLOGRAM.SHOWN' })),
    'shape of the resource': () =>
      normalisePaypal(posted({ id: 'WH-1', event_type: 'PAYMENT.PAYOUTS-ITEM.SUCCEEDED', resource: 7 })),
  },
  streamelements: {
    'type of message': () => tip({}, { type: 'hologram' }),
    topic: () => tip({}, { topic: 'holograms' }),
    'state of the payment': () => tip({ status: 'half_paid' }),
    'state of the approval': () => tip({ approved: 'perhaps' }),
    'shape of a tip': () => tip({ _id: {} }),
  },
  discord: {
    action: () => normaliseDiscord(said({ account_id: 'x', action: 'member_explode', place: 's:1', member: {} })),
  },
};
const ROWS = VENDORS.flatMap((vendor) =>
  Object.entries(UNKNOWN[vendor]).map(([what, outcome]) => [vendor, what, outcome] as const),
);

test.each(ROWS)('%s: an unknown %s is kept for an operator', (_vendor, _what, outcome) => {
  expect(outcome()).toMatchObject({ kind: 'park' });
});

test('what a vendor documents and nothing here keeps is counted by its name', () => {
  const known = [
    kick('kicks.gifted'),
    shopify('refunds/create', {}),
    youtube({ type: 'giftEvent' }),
    trovo({ type: 5004 }),
    normaliseStripe(posted({ type: 'payment_intent.succeeded' }), PLATFORM),
    normalisePaypal(posted({ event_type: 'PAYMENT.PAYOUTS-ITEM.HELD' })),
    twitch(frame({ subscription_type: 'channel.shoutout.create' })),
    twitch(frame({ message_type: 'session_keepalive' })),
    tip({ status: 'refunded' }),
    tip({ approved: 'rejected' }),
  ];
  expect(known.map((outcome) => outcome.kind)).toEqual(known.map(() => 'skip'));
});

test('a delivery of Kick for a channel of nobody here is not kept, since every app has the same key', async () => {
  const body = read('kick', 'channel.followed.json');
  const sign = (file: string) => ({ ...WEBHOOKS.kick!.sign(body, file), 'kick-event-type': 'channel.someFutureEvent' });
  const ours = door();
  expect(await ours.deliver('/v1/webhooks/kick', body, sign('channel.followed.json'))).toBe(200);
  expect(ours.kept.parked).toEqual(['unknown_type']);
  const theirs = door([]);
  expect(await theirs.deliver('/v1/webhooks/kick', body, sign('channel.followed.json'))).toBe(200);
  expect(theirs.kept.parked).toEqual([]);
});
