import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { z } from 'zod';
import { EVENT_TYPES, shapeOf } from '../domain/event-catalogue';
import { INSTALLATION, type RecordEnvelope } from '../domain/records';
import { actionOf, normaliseDiscord } from '../ingest/discord/members';
import type { LivingConnection, Received } from '../ingest/runtime/adapter';
import type { DraftRecord, Outcome } from '../ingest/runtime/webhook';
import { webhookRoutes, type WebhookDeps } from '../ingest/runtime/webhooks';
import { normaliseTips } from '../ingest/streamelements/tips';
import { normaliseTrovoChat } from '../ingest/trovo/chat';
import { normaliseTwitch } from '../ingest/twitch/normalise';
import { normaliseYoutubeChat } from '../ingest/youtube/chat';
import { ApiError } from '../kernel/errors';
import PAYLOADS from './fixtures/payloads.json';
import { silentLog } from './support/log';
import { channelOf, twitchFrame } from './support/twitch-frames';
import * as support from './support/webhooks';

const ACCOUNT = '01900000-0000-7000-8000-000000000001';
const SHOP = 'lumio-test.myshopify.com';
const NOW = Date.parse('2026-11-22T07:00:00Z');
const AT = new Date(NOW).toISOString();

/** A parked body, beside what is stored. */
interface Kept {
  records: (RecordEnvelope & { topic: string })[];
  parked: string[];
}

/** Every channel, shop and PayPal delivery is known; what is signed is what the test signs. */
function door(): { kept: Kept; deliver(path: string, body: Buffer, headers: Record<string, string>): Promise<number> } {
  const records = support.keptRecords();
  const kept: Kept = { records: records.kept, parked: [] };
  const account = [{ account_id: ACCOUNT, secret: support.signing.shop_secret }];
  const deps: WebhookDeps = {
    settings: support.webhookSettings(),
    paypal: { isOwn: async ({ transmission_sig }) => transmission_sig === 'good' },
    connections: {
      byChannel: async () => account,
      byShopDomain: async (domain) => (domain === SHOP ? account[0]! : null),
    },
    records,
    parked: { park: async ({ reason }) => void kept.parked.push(reason) },
    log: silentLog,
    metrics: support.keptMetrics(),
    now: () => NOW,
  };
  const routes = webhookRoutes(deps);
  return {
    kept,
    async deliver(path, body, headers) {
      try {
        return (await support.deliver(routes, path, body, headers, NOW)).status;
      } catch (error) {
        if (error instanceof ApiError) return error.status;
        throw error;
      }
    },
  };
}

const paypalHeaders = (signature: string) => ({
  'paypal-transmission-id': 't-1',
  'paypal-transmission-time': AT,
  'paypal-transmission-sig': signature,
  'paypal-auth-algo': 'SHA256withRSA',
  'paypal-cert-url': 'https://api.paypal.com/cert',
});
const KICK_TYPES = JSON.parse(support.fixture('kick', 'headers.json').toString()) as Record<string, any>;
const { stripe_secret, stripe_connect_secret } = support.signing;

/** How each vendor's webhook is spoken to, as that vendor would. */
const WEBHOOKS: Readonly<Record<string, { path: string; sign(body: Buffer, file: string): Record<string, string> }>> = {
  kick: {
    path: 'kick',
    sign: (body, file) =>
      support.kickHeaders(body, KICK_TYPES[file]?.['Kick-Event-Type'] ?? 'chat.message.sent', '01JX-1', AT),
  },
  youtube: { path: 'youtube', sign: support.youtubeHeaders },
  trovo: { path: 'trovo', sign: support.trovoHeaders },
  shopify: {
    path: 'shopify',
    sign(body, file) {
      const topic = file.includes('products')
        ? 'products/create'
        : file.includes('paid')
          ? 'orders/paid'
          : 'orders/create';
      return support.shopifyHeaders(body, file.startsWith('other_') ? 'refunds/create' : topic, 'event-1', SHOP);
    },
  },
  stripe: { path: 'stripe', sign: (body) => support.stripeHeaders(body, NOW / 1000, stripe_secret) },
  'stripe-connect': {
    path: 'stripe-connect',
    sign: (body) => support.stripeHeaders(body, NOW / 1000, stripe_connect_secret),
  },
  paypal: { path: 'paypal-payouts', sign: () => paypalHeaders('good') },
};

const connection = (channel_id: string): LivingConnection => ({
  connection_id: 'connection-1',
  account_id: ACCOUNT,
  channel_id,
});
type Normalise = (received: Received, connection: LivingConnection) => Outcome;
/** What is said over sockets of ours, and how it is read. */
const SOCKETS: Readonly<Record<string, Normalise>> = {
  twitch: normaliseTwitch,
  youtube: normaliseYoutubeChat,
  trovo: normaliseTrovoChat,
  streamelements: normaliseTips,
  discord: normaliseDiscord,
};

const described = ({
  topic,
  type,
  external_id,
  subject,
  subjects = [],
}: DraftRecord | (RecordEnvelope & { topic: string })) =>
  [topic, type, external_id, subject ?? '-', ...subjects].join(' ');
const read = (vendor: string, file: string) => readFileSync(join(__dirname, 'fixtures', vendor, file));

/** Payloads of a vendor that come over a socket, as that socket carries them. */
function spoken(vendor: string, file: string): [string, string][] | null {
  const text = read(vendor, file).toString();
  switch (vendor) {
    case 'twitch':
      return [[twitchFrame(file), channelOf(twitchFrame(file))]];
    case 'youtube': {
      if (!file.startsWith('livechat.')) return null;
      const { items } = JSON.parse(text) as { items?: unknown[] };
      return (items ?? [JSON.parse(text)]).map((item) => [JSON.stringify(item), 'UCabc']);
    }
    case 'trovo': {
      if (!file.startsWith('chat.item')) return null;
      return [[text, '100000021']];
    }
    case 'streamelements':
      return file.startsWith('realtime') ? null : [[text, 'twitch']];
    case 'discord': {
      const { t, s, d } = JSON.parse(text) as { t?: string; s: number; d: object };
      const happened = actionOf(t);
      if (happened === null) return null;
      const action = happened === 'member_update' ? 'boost' : happened;
      return [[JSON.stringify({ account_id: ACCOUNT, action, place: `session:${s}`, member: d }), 'bot']];
    }
    default:
      return null;
  }
}

const outcomeText = (outcome: Outcome): string[] =>
  outcome.kind === 'ok'
    ? outcome.records.map(described)
    : [outcome.kind === 'refuse' ? 'refuse' : `${outcome.kind} ${outcome.reason}`];

/** What becomes of a payload, in a line for each record. */
async function told(vendor: string, file: string): Promise<string[]> {
  const said = spoken(vendor, file);
  if (said !== null) {
    return said.flatMap(([text, channel_id]) =>
      outcomeText(SOCKETS[vendor]!({ text, received_at: NOW, age_ms: 0 }, connection(channel_id))),
    );
  }
  const webhook = WEBHOOKS[vendor]!;
  const body = read(vendor, file);
  const { kept, deliver } = door();
  const status = await deliver(`/v1/webhooks/${webhook.path}`, body, webhook.sign(body, file));
  if (kept.records.length > 0) return kept.records.map(described);
  return [`${status}${kept.parked.length > 0 ? ` ${kept.parked.join()}` : ''}`];
}

/** Answers of APIs, requests of ours and notes: nothing that a vendor pushes. */
const NOT_PUSHED =
  /^(SOURCES\.md|api\.|headers\.json|object\.|kick-public-key|ws\.|rest\.|READY|gateway\.op|realtime\.|webhook_)/;
const VENDORS = Object.keys({ ...WEBHOOKS, ...SOCKETS });
const FILES = VENDORS.flatMap((vendor) =>
  readdirSync(join(__dirname, 'fixtures', vendor))
    .filter((file) => !NOT_PUSHED.test(file) && !(vendor === 'trovo' && file.startsWith('chat.normal')))
    .sort()
    .map((file): [string, string] => [vendor, file]),
);

test('every payload becomes what the table says: topic, type, id, and whom it is about', async () => {
  const found: Record<string, string[]> = {};
  // Twitch's has a table of its own (test/twitch-normalise.test.ts).
  for (const [vendor, file] of FILES.filter(([one]) => one !== 'twitch'))
    found[`${vendor}/${file}`] = await told(vendor, file);
  expect(found).toEqual(PAYLOADS);
});

test('what is stored is of the shape that the catalogue shows', async () => {
  const shapes = new Map(
    EVENT_TYPES.map((one) => [one.type, z.fromJSONSchema(shapeOf(one) as Parameters<typeof z.fromJSONSchema>[0])]),
  );
  const wrong: string[] = [];
  const judge = (file: string, { topic, type, raw }: { topic: string; type: string; raw: string }) => {
    if (topic !== 'platform-events') return;
    const issue = shapes.get(type)?.safeParse(JSON.parse(raw)).error?.issues[0];
    if (!shapes.has(type)) wrong.push(`${file}: ${type} is not in the catalogue`);
    if (issue) wrong.push(`${file} (${type}): ${issue.path.join('.')} ${issue.message}`);
  };
  for (const [vendor, file] of FILES) {
    const said = spoken(vendor, file);
    for (const [text, channel_id] of said ?? []) {
      const outcome = SOCKETS[vendor]!({ text, received_at: NOW, age_ms: 0 }, connection(channel_id));
      if (outcome.kind === 'ok') for (const record of outcome.records) judge(file, record);
    }
    if (said !== null) continue;
    const { kept, deliver } = door();
    const body = read(vendor, file);
    await deliver(`/v1/webhooks/${WEBHOOKS[vendor]!.path}`, body, WEBHOOKS[vendor]!.sign(body, file));
    for (const record of kept.records) judge(file, record);
  }
  expect(wrong).toEqual([]);
});

describe('whatever bytes come', () => {
  const bodies = FILES.filter(([vendor]) => vendor in WEBHOOKS).map(([vendor, file]) => read(vendor, file));
  /** Nothing at all, noise, or a payload of some vendor that was cut, spliced or bent. */
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((some) => Buffer.from(some)),
    fc.json().map((text) => Buffer.from(text)),
    fc
      .tuple(fc.constantFrom(...bodies), fc.nat(), fc.nat(30), fc.uint8Array({ maxLength: 8 }))
      .map(([body, at, cut, put]) => {
        const from = at % body.length;
        return Buffer.concat([body.subarray(0, from), Buffer.from(put), body.subarray(from + cut)]);
      }),
  );
  const header = fc.oneof(
    fc.string({ maxLength: 60 }),
    fc.stringMatching(/^[a-z0-9=,.:/+ -]{0,60}$/),
    fc.constantFrom('', 't=1,v1=00', 'sha256=00', 'sha1=', AT, `t=${NOW / 1000},v1=${'0'.repeat(64)}`),
  );
  const NAMES = [
    ...['kick-event-signature', 'x-kick-signature', 'kick-event-message-id', 'kick-event-message-timestamp'],
    ...['kick-event-type', 'x-hub-signature', 'x-hub-signature-256', 'x-trovo-signature', 'stripe-signature'],
    ...['x-shopify-topic', 'x-shopify-shop-domain', 'x-shopify-hmac-sha256', 'x-shopify-event-id'],
    ...Object.keys(paypalHeaders('')),
  ];
  const headers = fc.dictionary(fc.constantFrom(...NAMES), header);
  const paths = Object.values(WEBHOOKS).map(({ path }) => `/v1/webhooks/${path}`);

  test('no webhook answers 5xx, and nothing is kept of what nobody signed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...paths), bytes, headers, async (path, body, given) => {
        const { kept, deliver } = door();
        expect([400, 401, 403]).toContain(await deliver(path, body, given));
        expect(kept).toEqual({ records: [], parked: [] });
      }),
      { numRuns: 400 },
    );
  });

  test('what is signed is answered 200, or 400 where the specification says so, and lands once or not at all', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...Object.keys(WEBHOOKS)), bytes, async (vendor, body) => {
        const { path, sign } = WEBHOOKS[vendor]!;
        const { kept, deliver } = door();
        const status = await deliver(`/v1/webhooks/${path}`, body, sign(body, 'channel.followed.json'));
        // PayPal signs JSON alone; YouTube's feed without a channel is 400.
        expect(vendor === 'paypal' ? [200, 401] : vendor === 'youtube' ? [200, 400] : [200]).toContain(status);
        expect(status === 200 || kept.records.length + kept.parked.length === 0).toBe(true);
        for (const { account_id } of kept.records) expect([ACCOUNT, INSTALLATION]).toContain(account_id);
      }),
      { numRuns: 400 },
    );
  });

  test('no word of a socket makes its reader throw', () => {
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(SOCKETS)), bytes, (vendor, some) => {
        const outcome = SOCKETS[vendor]!({ text: some.toString(), received_at: NOW }, connection('1'));
        expect(['ok', 'skip', 'park']).toContain(outcome.kind);
      }),
      { numRuns: 1_000 },
    );
  });
});
