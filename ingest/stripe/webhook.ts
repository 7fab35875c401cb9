import { INSTALLATION, TOPICS } from '../../domain/common/records';
import { hmacMatches, isFresh, secretList } from '../runtime/webhook/signatures';
import { eventTime } from '../runtime/parse/times';
import type { WebhookSettings } from '../runtime/webhook/vendors';
import * as webhook from '../runtime/webhook/webhook';
import type { Delivery, Outcome, WebhookRequest, WebhookVendor } from '../runtime/webhook/webhook';

/**
 * Stripe's webhooks (spec doc3 §4.2): of the platform's own account, and of the accounts connected to it, each with its
 * own secret. Without a secret everything is refused; only the Connect endpoint may be opened, in development, by
 * `payments.allow_unsigned_webhooks`.
 */
export function createStripeWebhooks({ stripe, payments }: WebhookSettings): WebhookVendor[] {
  const common = { vendor: 'stripe', headers: [], signatures: ['stripe-signature'] } as const;
  return [
    {
      ...common,
      path: '/v1/webhooks/stripe',
      verify: signedBy(stripe.webhook_secret, false),
      normalise: (delivery) => normaliseStripe(delivery, PLATFORM),
    },
    {
      ...common,
      path: '/v1/webhooks/stripe-connect',
      undescribed: true,
      verify: signedBy(payments.stripe_connect_webhook_secret, payments.allow_unsigned_webhooks),
      normalise: (delivery) => normaliseStripe(delivery, CONNECT),
    },
  ];
}

/** Types that an endpoint stores, and the prefix of their records. */
interface Endpoint {
  prefix: readonly string[];
  types: ReadonlySet<string>;
}

/**
 * Types that change a subscription or report a payment. `customer.subscription.created` and, for Connect, `.updated`
 * are kept beyond the spec's list: without them the state of a subscription has gaps.
 */
export const PLATFORM: Endpoint = {
  prefix: [],
  types: new Set([
    'checkout.session.completed',
    'customer.subscription.created',
    'customer.subscription.updated',
    'customer.subscription.deleted',
    'invoice.payment_failed',
  ]),
};
export const CONNECT: Endpoint = {
  prefix: ['connect'],
  types: new Set([
    'checkout.session.completed',
    'charge.refunded',
    'transfer.paid',
    'transfer.failed',
    'customer.subscription.created',
    'customer.subscription.updated',
    'customer.subscription.deleted',
    'invoice.payment_succeeded',
    'invoice.payment_failed',
    'account.updated',
  ]),
};

/** Types that an endpoint can deliver: one of Stripe's objects, and the action. */
const DOCUMENTED = new RegExp(
  '^(?:account|application_fee|balance|billing|billing_portal|capability|cash_balance|charge|checkout|climate|coupon|' +
    'credit_note|customer|customer_cash_balance_transaction|entitlements|file|financial_connections|identity|invoice|' +
    'invoice_payment|invoiceitem|issuing_[a-z]+|mandate|payment_intent|payment_link|payment_method|payout|person|plan|' +
    'price|product|promotion_code|quote|radar|refund|reporting|review|setup_intent|sigma|source|subscription_schedule|' +
    'tax|tax_rate|terminal|test_helpers|topup|transfer|treasury)\\.[a-z_.]+$',
);

/** Time of the signature in the header, which also has a signature for each secret in use. */
const SIGNED_AT = /^\d{9,11}$/;
/** Maximum signatures: two while secrets are exchanged; more than a handful is an attack. */
const MAX_SIGNATURES = 8;

function signedBy(setting: string, open: boolean): WebhookVendor['verify'] {
  const secrets = secretList(setting);
  return async ({ headers, raw_body }: WebhookRequest, _connections, now) => {
    if (secrets.length === 0) {
      if (open) return webhook.BODY_ALONE;
      throw webhook.unauthorized();
    }
    const header = webhook.headerOf(headers, 'stripe-signature');
    if (header === null) throw webhook.unauthorized('Missing webhook signature');
    const { signed_at, signatures } = readSignature(header);
    if (!SIGNED_AT.test(signed_at) || signatures.length === 0) throw webhook.unauthorized();
    const signed = Buffer.concat([Buffer.from(`${signed_at}.`), raw_body]);
    if (!hmacMatches('sha256', 'hex', secrets, signed, signatures)) throw webhook.unauthorized();
    if (!isFresh(signed_at, now)) throw webhook.unauthorized('Webhook timestamp is outside the tolerance');
    return { id_signed: true };
  };
}

/** `t=…,v1=…[,v1=…][,v0=…]`; schemes other than `v1` prove nothing. */
function readSignature(header: string): { signed_at: string; signatures: string[] } {
  let signed_at = '';
  const signatures: string[] = [];
  for (const part of header.split(',')) {
    const [scheme = '', value = ''] = part.trim().split('=', 2);
    if (scheme === 't') signed_at = value;
    else if (scheme === 'v1' && signatures.length < MAX_SIGNATURES) signatures.push(value);
  }
  return { signed_at, signatures };
}

/**
 * Converts Stripe's event to a record on `webhook-events`, for the consumers of plans and payments. Each event id
 * counts once, however often and in whatever order it arrives.
 */
export function normaliseStripe(delivery: Delivery, { prefix, types }: Endpoint): Outcome {
  const body = webhook.readJsonBody(delivery);
  if (!body.ok) return body.outcome;
  const at = (...path: string[]) => webhook.member(body.value, ...path);
  const type = at('type');
  if (typeof type !== 'string' || type === '') return webhook.park('bad_payload', 'type is missing');
  if (!types.has(type)) return webhook.unmapped(type, DOCUMENTED.test(type));
  const object_id = webhook.idText(at('data', 'object', 'id'));
  if (object_id === null) return webhook.park('bad_payload', 'data.object.id is missing');
  const event_id = webhook.idText(at('id'));
  return webhook.ok({
    owner: { kind: 'account', account_id: INSTALLATION },
    topic: TOPICS.webhook_events,
    type: ['stripe:', [...prefix, type].join('.')].join(''),
    platform: 'stripe',
    external_id:
      event_id === null
        ? webhook.contentId('stripe', delivery, type)
        : webhook.externalId('stripe', ...prefix, event_id),
    occurred_at: eventTime(delivery.received_at, at('created')),
    subject: webhook.subjectOf('stripe', payerOf(at('data', 'object')) ?? object_id),
    raw: body.raw,
  });
}

/**
 * Id of the person whose e-mail and address the object holds: the customer, which may be an account of its own; the
 * connected account that a transfer goes to; for a guest without an id the payment, which a checkout and its refund
 * share.
 */
function payerOf(object: unknown): string | null {
  for (const name of ['customer', 'customer_account', 'destination', 'payment_intent']) {
    const value = webhook.member(object, name);
    const id = webhook.idText(value) ?? webhook.idText(webhook.member(value, 'id'));
    if (id !== null) return id;
  }
  return null;
}
