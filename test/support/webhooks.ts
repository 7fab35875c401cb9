import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConnectionLookup } from '../../services/connections/connections';
import type { RecordEnvelope } from '../../domain/common/records';
import type { Metrics } from '../../engines/metrics/port';
import type { RecordLog } from '../../engines/records/port';
import type { WebhookSettings } from '../../ingest/runtime/webhook/vendors';
import type { WebhookAnswer, WebhookRequest, WebhookRoute } from '../../ingest/runtime/webhook/webhook';
import type { Settings } from '../../kernel/settings/settings';

const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });

/** Secrets that the tests' settings name, and the means to sign with them. */
export const signing = {
  kick_private_key: pair.privateKey,
  settings: {
    require_signatures: true,
    youtube_secret: 'youtube-secret',
    kick_public_key: pair.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    kick_secret: 'kick-legacy-secret',
    trovo_secret: 'trovo-secret',
  },
  shop_secret: 'shpss_of-one-shop',
  stripe_secret: 'whsec_platform',
  stripe_connect_secret: 'whsec_connect',
  paypal_webhook_id: '1JE4291016473214C',
};

/** All of the webhooks' settings, with some of them changed. */
export const webhookSettings = (
  webhooks: Partial<Settings['webhooks']> = {},
  payments: Partial<Settings['payments']> = {},
): WebhookSettings => ({
  webhooks: { ...signing.settings, ...webhooks },
  stripe: { webhook_secret: signing.stripe_secret },
  payments: {
    stripe_connect_webhook_secret: signing.stripe_connect_secret,
    allow_unsigned_webhooks: false,
    paypal_webhook_id: signing.paypal_webhook_id,
    ...payments,
  },
});

export const hmac = (algorithm: string, secret: string, body: Buffer, encoding: 'hex' | 'base64') =>
  createHmac(algorithm, secret).update(body).digest(encoding);

/** Headers of a Kick delivery, signed as Kick does. */
export function kickHeaders(body: Buffer, type: string, message_id: string, timestamp: string, key = pair.privateKey) {
  const signed = Buffer.concat([Buffer.from(`${message_id}.${timestamp}.`), body]);
  return {
    'kick-event-message-id': message_id,
    'kick-event-message-timestamp': timestamp,
    'kick-event-type': type,
    'kick-event-version': '1',
    'kick-event-signature': sign('sha256', signed, key).toString('base64'),
  };
}

export const youtubeHeaders = (body: Buffer) => ({
  'x-hub-signature': `sha1=${hmac('sha1', signing.settings.youtube_secret, body, 'hex')}`,
});
export const trovoHeaders = (body: Buffer) => ({
  'x-trovo-signature': hmac('sha256', signing.settings.trovo_secret, body, 'hex'),
});
export const shopifyHeaders = (body: Buffer, topic: string, event_id: string, shop = 'lumio-test.myshopify.com') => ({
  'x-shopify-topic': topic,
  'x-shopify-shop-domain': shop,
  'x-shopify-event-id': event_id,
  'x-shopify-hmac-sha256': hmac('sha256', signing.shop_secret, body, 'base64'),
});

/** Signed at that time, in Unix seconds, under each of the secrets. */
export function stripeHeaders(body: Buffer, at: number, ...secrets: readonly string[]) {
  const signed = Buffer.concat([Buffer.from(`${at}.`), body]);
  const signatures = secrets.map((secret) => `v1=${hmac('sha256', secret, signed, 'hex')}`);
  return { 'stripe-signature': [`t=${at}`, ...signatures].join(',') };
}

/** Hands a request to the route of that method and path, as the front door does. */
export async function deliver(
  routes: readonly WebhookRoute[],
  path: string,
  raw_body: Buffer,
  headers: WebhookRequest['headers'],
  received_at = Date.now(),
): Promise<WebhookAnswer> {
  const route = routes.find((candidate) => candidate.method === 'POST' && candidate.path === path);
  if (!route) throw new Error(`no route ${path}`);
  const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  return route.handle({ headers, query: {}, raw_body, received_at, ip: '192.0.2.1', trace });
}

/** A record log that keeps what it was given, or fails as it is told. */
export function keptRecords(): RecordLog & { kept: (RecordEnvelope & { topic: string })[]; fail: Error | null } {
  const log = {
    kept: [] as (RecordEnvelope & { topic: string })[],
    fail: null as Error | null,
    async append(topic: string, records: readonly RecordEnvelope[]) {
      if (log.fail) throw log.fail;
      log.kept.push(...records.map((record) => ({ topic, ...record })));
      return new Map<number, number>();
    },
    async subjectsOf(records: readonly unknown[]) {
      return records.map(() => []);
    },
    async decode() {
      return { records: [], undecodable: [] };
    },
  };
  return log;
}

/** Connections from tables: `kick:123` or a shop's domain to account ids. */
export function connectionsOf(accounts: Readonly<Record<string, string[]>>, secret: string | null): ConnectionLookup {
  const found = (key: string) =>
    (accounts[key] ?? []).map((account_id) => ({ account_id, secret, subscriptions: null }));
  return {
    byChannel: async (platform, id) => found(`${platform}:${id}`),
    readByChannel: async (platform, id) => found(`${platform}:${id}`),
    byShopDomain: async (domain) => found(domain)[0] ?? null,
  };
}

/** Metrics that keep the counts, by name and label values. */
export function keptMetrics(): Metrics & { counts: Map<string, number> } {
  const counts = new Map<string, number>();
  return {
    counts,
    counter: (name) => ({
      inc(amount = 1, labels = {}) {
        const key = [name, ...Object.values(labels)].join(' ');
        counts.set(key, (counts.get(key) ?? 0) + amount);
      },
    }),
    gauge: () => ({ set: () => undefined }),
    histogram: () => ({ observe: () => undefined }),
  };
}

export const fixture = (vendor: string, name: string): Buffer =>
  readFileSync(join(__dirname, '../fixtures', vendor, name));

/** Payload files of one vendor. */
export function fixturesOf(vendor: string, ending: string): [string, Buffer][] {
  return readdirSync(join(__dirname, '../fixtures', vendor))
    .filter((name) => name.endsWith(ending))
    .map((name) => [name, fixture(vendor, name)]);
}
