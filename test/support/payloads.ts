import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecordEnvelope } from '../../domain/common/records';
import { isVendor } from '../../domain/common/vendors';
import { actionOf } from '../../ingest/discord/members';
import type { LinkedConnection } from '../../ingest/runtime/connection/adapter';
import { CONNECTION_NORMALISERS } from '../../ingest/runtime/connection/normalisers';
import type { Outcome } from '../../ingest/runtime/webhook/webhook';
import { webhookRoutes, type WebhookDeps } from '../../ingest/runtime/webhook/webhooks';
import { ApiError } from '../../kernel/errors';
import { silentLog } from './log';
import { channelOf, twitchFrame } from './twitch-frames';
import * as support from './webhooks';

const FIXTURES = join(__dirname, '../fixtures');
export const ACCOUNT = '01900000-0000-7000-8000-000000000001';
const SHOP = 'lumio-test.myshopify.com';
export const NOW = Date.parse('2026-11-22T07:00:00Z');
export const AT = new Date(NOW).toISOString();

/** A parked body, beside what is stored. */
export interface Kept {
  records: (RecordEnvelope & { topic: string })[];
  parked: string[];
}

/** Every channel, shop and PayPal delivery is known; what is signed is what the test signs. */
export function door(accounts: readonly string[] = [ACCOUNT]): {
  kept: Kept;
  deliver(path: string, body: Buffer, headers: Record<string, string>): Promise<number>;
} {
  const records = support.keptRecords();
  const kept: Kept = { records: records.kept, parked: [] };
  const secret = support.signing.shop_secret;
  const account = accounts.map((account_id) => ({ account_id, secret, subscriptions: null }));
  const deps: WebhookDeps = {
    settings: support.webhookSettings(),
    paypal: { isOwn: async ({ transmission_sig }) => transmission_sig === 'good' },
    connections: {
      byChannel: async () => account,
      readByChannel: async () => account,
      byShopDomain: async (domain) => (domain === SHOP ? (account[0] ?? null) : null),
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

export const paypalHeaders = (signature: string) => ({
  'paypal-transmission-id': 't-1',
  'paypal-transmission-time': AT,
  'paypal-transmission-sig': signature,
  'paypal-auth-algo': 'SHA256withRSA',
  'paypal-cert-url': 'https://api.paypal.com/cert',
});
const KICK_TYPES = JSON.parse(support.fixture('kick', 'headers.json').toString()) as Record<string, any>;
const { stripe_secret, stripe_connect_secret } = support.signing;

/** How each vendor's webhook is spoken to, as that vendor would. */
export const WEBHOOKS: Readonly<
  Record<string, { path: string; sign(body: Buffer, file: string): Record<string, string> }>
> = {
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

export const connection = (channel_id: string): LinkedConnection => ({
  connection_id: 'connection-1',
  account_id: ACCOUNT,
  channel_id,
});
/** Vendors whose words over sockets of ours are among the fixtures. */
export const SOCKETS = ['twitch', 'youtube', 'trovo', 'streamelements', 'discord'];

/** What was said over a connection of ours, as its adapter reads it; it may have parsed it already. */
export function readSpoken(vendor: string, text: string, channel_id: string, age_ms?: number, parsed = false): Outcome {
  const normalise = isVendor(vendor) ? CONNECTION_NORMALISERS[vendor] : undefined;
  if (normalise === undefined) throw new Error(`nobody listens to ${vendor}`);
  const value: unknown = parsed ? JSON.parse(text) : undefined;
  return normalise({ text, value, received_at: NOW, age_ms }, connection(channel_id));
}

export const read = (vendor: string, file: string) => readFileSync(join(FIXTURES, vendor, file));

/** Payloads of a vendor that come over a socket, as that socket carries them. */
export function spoken(vendor: string, file: string): [string, string][] | null {
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

/** Answers of APIs, requests of ours and notes: nothing that a vendor pushes. */
const NOT_PUSHED =
  /^(SOURCES\.md|api\.|headers\.json|object\.|kick-public-key|ws\.|rest\.|READY|gateway\.op|realtime\.|webhook_)/;
const VENDORS = [...new Set([...Object.keys(WEBHOOKS), ...SOCKETS])];
/** Every payload that a vendor pushes: vendor and file. */
export const FILES = VENDORS.flatMap((vendor) =>
  readdirSync(join(FIXTURES, vendor))
    .filter((file) => !NOT_PUSHED.test(file) && !(vendor === 'trovo' && file.startsWith('chat.normal')))
    .sort()
    .map((file): [string, string] => [vendor, file]),
);
