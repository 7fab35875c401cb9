import { INSTALLATION, TOPICS } from '../../domain/common/records';
import { ApiError } from '../../kernel/errors';
import { type DeliveryVerification, VerificationUnavailable } from '../../vendors/paypal/port';
import { eventTime } from '../runtime/parse/times';
import type { WebhookSettings } from '../runtime/webhook/vendors';
import * as webhook from '../runtime/webhook/webhook';
import type { Delivery, Outcome, WebhookRequest, WebhookVendor } from '../runtime/webhook/webhook';

/**
 * PayPal's webhook of payouts (spec doc3 §4.2). PayPal itself verifies a delivery, from the transmission headers and
 * the unchanged body. Refused without `payments.paypal_webhook_id` and the app for this call; 503 while PayPal does not
 * answer, so that it delivers again.
 */
export function createPaypalWebhook(
  { paypal_webhook_id }: WebhookSettings['payments'],
  verification: DeliveryVerification | null,
): WebhookVendor {
  return {
    vendor: 'paypal',
    path: '/v1/webhooks/paypal-payouts',
    undescribed: true,
    headers: [],
    signatures: ['paypal-transmission-sig'],
    async verify(request) {
      if (paypal_webhook_id === '' || verification === null) throw webhook.unauthorized();
      const transmission = readTransmission(request.headers);
      const event = readBody(request.raw_body);
      const own = await verification
        .isOwn({ ...transmission, webhook_id: paypal_webhook_id, event })
        .catch((error: unknown) => {
          if (!(error instanceof VerificationUnavailable)) throw error;
          throw new ApiError('INTERNAL_SERVER_ERROR', error.message, {
            status: 503,
            retry_after_seconds: error.retry_after_seconds,
            cause: error,
          });
        });
      if (!own) throw webhook.unauthorized();
      return { id_signed: true };
    },
    normalise: normalisePaypal,
  };
}

/** Longer than any value that PayPal sends; the certificate's address is the longest. */
const MAX_HEADER = 1_024;

function readTransmission(headers: WebhookRequest['headers']) {
  const value = (name: string): string => {
    const text = webhook.headerOf(headers, name)?.trim();
    if (text === undefined) throw webhook.unauthorized('Missing webhook signature');
    if (text.length > MAX_HEADER) throw webhook.unauthorized();
    return text;
  };
  const cert_url = value('paypal-cert-url');
  if (!isPaypalAddress(cert_url)) throw webhook.unauthorized();
  return {
    transmission_id: value('paypal-transmission-id'),
    transmission_time: value('paypal-transmission-time'),
    transmission_sig: value('paypal-transmission-sig'),
    auth_algo: value('paypal-auth-algo'),
    cert_url,
  };
}

/** https at `paypal.com` or a subdomain, on the usual port and without a user; `evilpaypal.com` does not match. */
export function isPaypalAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, port, username, password } = new URL(text);
  if (protocol !== 'https:' || port !== '' || username !== '' || password !== '') return false;
  return hostname.split('.').slice(-2).join('.') === 'paypal.com' && !hostname.startsWith('.');
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The unchanged text of the event. It is inserted between members of our own request, so it must be one whole JSON
 * object: anything else could name another webhook there.
 */
function readBody(raw_body: Buffer): string {
  let text: string;
  let value: unknown;
  try {
    text = utf8.decode(raw_body);
    value = JSON.parse(text);
  } catch (cause) {
    throw new ApiError('UNAUTHORIZED', 'Invalid webhook signature', { cause });
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw webhook.unauthorized();
  return text;
}

const TYPES: ReadonlySet<string> = new Set([
  'PAYMENT.PAYOUTS-ITEM.SUCCEEDED',
  'PAYMENT.PAYOUTS-ITEM.FAILED',
  'PAYMENT.PAYOUTS-ITEM.UNCLAIMED',
  'PAYMENT.PAYOUTSBATCH.SUCCESS',
]);

/** Types that a webhook can deliver. */
const DOCUMENTED =
  /^(?:BILLING|BILLING_AGREEMENTS|CATALOG|CHECKOUT|CUSTOMER|IDENTITY|INVOICING|MERCHANT|PAYMENT|PAYMENTS|RISK|VAULT)[.A-Z_-]+$/;

/** Converts PayPal's event to a record on `webhook-events`; an unclaimed item has not failed. */
export function normalisePaypal(delivery: Delivery): Outcome {
  const body = webhook.readJsonBody(delivery);
  if (!body.ok) return body.outcome;
  const at = (...path: string[]) => webhook.member(body.value, ...path);
  const type = at('event_type');
  if (typeof type !== 'string' || type === '') return webhook.park('bad_payload', 'event_type is missing');
  if (!TYPES.has(type)) return webhook.unmapped(type, DOCUMENTED.test(type));
  const item_id = webhook.idText(at('resource', 'payout_item_id'));
  const batch_id = webhook.idText(at('resource', 'batch_header', 'payout_batch_id'));
  if (item_id === null && batch_id === null) return webhook.park('bad_payload', 'resource names no item and no batch');
  const event_id = webhook.idText(at('id'));
  return webhook.ok({
    owner: { kind: 'account', account_id: INSTALLATION },
    topic: TOPICS.webhook_events,
    type: `paypal:${type.toLowerCase()}`,
    platform: 'paypal',
    external_id:
      event_id === null ? webhook.contentId('paypal', delivery, type) : webhook.externalId('paypal', event_id),
    occurred_at: eventTime(delivery.received_at, at('create_time')),
    // The receiver, mostly an e-mail address; capital letters do not make another person.
    subject: item_id === null ? null : webhook.subjectOf('paypal', receiverOf(at('resource')) ?? item_id),
    raw: body.raw,
  });
}

const receiverOf = (resource: unknown): string | null =>
  webhook.idText(webhook.member(resource, 'payout_item', 'receiver'))?.toLowerCase() ?? null;
