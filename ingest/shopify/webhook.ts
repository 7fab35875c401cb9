import { readShopDomain } from '../../domain/billing/shop-domains';
import { TOPICS } from '../../domain/common/records';
import type { Settings } from '../../kernel/settings/settings';
import { hmacMatches, secretList } from '../runtime/webhook/signatures';
import { eventTime } from '../runtime/parse/times';
import * as webhook from '../runtime/webhook/webhook';
import type { Delivery, Outcome, WebhookVendor } from '../runtime/webhook/webhook';

/**
 * Shopify's webhooks (spec doc3 §4.2), signed with the secret stored on the shop's connection. An unconnected shop has
 * no secret: 401 as for a wrong one, so that an answer does not reveal which shops are connected.
 */
export function createShopifyWebhook(settings: Settings['webhooks']): WebhookVendor {
  return {
    vendor: 'shopify',
    path: '/v1/webhooks/shopify',
    headers: [
      'x-shopify-topic',
      'x-shopify-shop-domain',
      'x-shopify-event-id',
      'x-shopify-webhook-id',
      'x-shopify-triggered-at',
      'x-shopify-api-version',
    ],
    signatures: ['x-shopify-hmac-sha256'],
    async verify({ headers, raw_body }, connections) {
      const shop_domain = readShopDomain(webhook.headerOf(headers, 'x-shopify-shop-domain') ?? '');
      const connection = shop_domain === null ? null : await connections.byShopDomain(shop_domain);
      const secrets = secretList(connection?.secret ?? '');
      if (secrets.length === 0) {
        if (settings.require_signatures) throw webhook.unauthorized();
        return webhook.BODY_ALONE;
      }
      const signature = webhook.headerOf(headers, 'x-shopify-hmac-sha256');
      if (signature === null) throw webhook.unauthorized('Missing webhook signature');
      if (!hmacMatches('sha256', 'base64', secrets, raw_body, signature)) throw webhook.unauthorized();
      return webhook.BODY_ALONE;
    },
    normalise: normaliseShopify,
  };
}

const PAID = 'orders/paid';
const TYPES: Readonly<Record<string, string>> = {
  'orders/create': 'shopify:order',
  [PAID]: 'shopify:order_paid',
  'products/create': 'shopify:product',
};

/** Topics that a shop can deliver: one of Shopify's resources, and the action. */
const DOCUMENTED = new RegExp(
  '^(?:app|app_subscriptions|audit_events|bulk_operations|carts|checkouts|collection_listings|collections|companies|' +
    'customer_groups|customer_payment_methods|customers|discounts|disputes|domains|draft_orders|fulfillment_events|' +
    'fulfillment_orders|fulfillments|inventory_items|inventory_levels|locales|locations|markets|metafields|' +
    'metaobjects|order_transactions|orders|payment_schedules|payment_terms|product_feeds|product_listings|products|' +
    'profiles|refunds|returns|reverse_deliveries|reverse_fulfillment_orders|scheduled_product_listings|segments|' +
    'selling_plan_groups|shop|subscription_billing_attempts|subscription_contracts|tax_partners|tender_transactions|' +
    'themes|variants)/[a-z_/]+$',
);

/**
 * Converts a payload of Shopify to a record. Test orders are kept: `raw` has `test: true`, and the consumer decides
 * what counts as a sale.
 */
export function normaliseShopify(delivery: Delivery): Outcome {
  const topic = delivery.header('x-shopify-topic')?.trim().toLowerCase();
  if (!topic) return webhook.park('no_topic', 'the header X-Shopify-Topic is missing');
  const type = Object.hasOwn(TYPES, topic) ? TYPES[topic]! : null;
  if (type === null) return webhook.unmapped(topic, DOCUMENTED.test(topic));
  const shop_domain = readShopDomain(delivery.header('x-shopify-shop-domain') ?? '');
  if (shop_domain === null) return webhook.park('no_shop', 'the header X-Shopify-Shop-Domain names no host');
  const body = webhook.readJsonBody(delivery);
  if (!body.ok) return body.outcome;
  if (body.value === null || typeof body.value !== 'object' || Array.isArray(body.value)) {
    return webhook.park('bad_payload', 'not an object');
  }
  // No signature covers the topic: an order of any kind must not become a sale by a header.
  if (topic === PAID && webhook.member(body.value, 'financial_status') !== 'paid')
    return webhook.park('not_paid', 'financial_status is not paid');
  return webhook.ok({
    owner: { kind: 'shop', shop_domain },
    // An event of the event log like any other (spec rulings c39).
    topic: TOPICS.platform_events,
    type,
    platform: 'shopify',
    external_id: shopifyId(delivery, topic, body.value),
    // One body can report both that an order was made and that it was paid.
    same_raw: 'once_per_type',
    occurred_at: occurredAt(delivery, topic, body.value),
    subject: type === 'shopify:product' ? null : buyer(body.value),
    raw: body.raw,
  });
}

/**
 * The event id is equal for every delivery of one event, also over several subscriptions; the webhook id only over
 * retries of one. No signature covers either, so equal bytes count once for each type whatever the ids are (spec
 * rulings, "event identity of webhooks"). One action of a buyer can fire `orders/create` and `orders/paid` under ONE
 * event id, and ids are deduplicated without regard to type: the latter's id includes its topic.
 */
function shopifyId(delivery: Delivery, topic: string, payload: unknown): string {
  const id = (delivery.header('x-shopify-event-id') ?? delivery.header('x-shopify-webhook-id'))?.trim();
  if (id !== undefined)
    return topic === PAID ? webhook.externalId('shopify', id, topic) : webhook.externalId('shopify', id);
  const object_id = objectId(payload);
  return object_id === null
    ? webhook.contentId('shopify', delivery, topic)
    : webhook.externalId('shopify', topic, object_id);
}

const objectId = (payload: unknown) =>
  webhook.idText(webhook.member(payload, 'id')) ?? webhook.idText(webhook.member(payload, 'admin_graphql_api_id'));

/**
 * An order is paid at another moment than it was made: there the delivery's trigger time, equal over its retries, comes
 * first.
 */
function occurredAt(delivery: Delivery, topic: string, payload: unknown): string {
  const at = (name: string) => webhook.member(payload, name);
  const triggered_at = delivery.header('x-shopify-triggered-at');
  return topic === PAID
    ? eventTime(delivery.received_at, triggered_at, at('updated_at'), at('processed_at'), at('created_at'))
    : eventTime(delivery.received_at, at('created_at'), triggered_at, at('updated_at'));
}

/** The customer; a guest is identified by the order alone, because its e-mail and addresses must be erasable, too. */
function buyer(payload: unknown): string | null {
  const customer = webhook.subjectOf('shopify', webhook.member(payload, 'customer', 'id'));
  if (customer !== null) return customer;
  const order_id = objectId(payload);
  return order_id === null ? null : webhook.externalId('shopify', 'guest-order', order_id);
}
