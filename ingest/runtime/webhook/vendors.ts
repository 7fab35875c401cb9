import type { Settings } from '../../../kernel/settings/settings';
import type { DeliveryVerification } from '../../../vendors/paypal/port';
import { createKickWebhook } from '../../kick/webhook';
import { createPaypalWebhook } from '../../paypal/webhook';
import { createShopifyWebhook } from '../../shopify/webhook';
import { createStripeWebhooks } from '../../stripe/webhook';
import { createTrovoWebhook } from '../../trovo/webhook';
import { createYoutubeWebhook } from '../../youtube/webhook';
import type { WebhookVendor } from './webhook';

/** Settings of the webhooks. */
export type WebhookSettings = Pick<Settings, 'webhooks' | 'stripe' | 'payments'>;

/**
 * @param paypal null when PayPal is not configured
 * @throws Error that names the setting when a key is unreadable
 */
export const vendors = (settings: WebhookSettings, paypal: DeliveryVerification | null): WebhookVendor[] => [
  createYoutubeWebhook(settings.webhooks),
  createKickWebhook(settings.webhooks),
  createTrovoWebhook(settings.webhooks),
  createShopifyWebhook(settings.webhooks),
  ...createStripeWebhooks(settings),
  createPaypalWebhook(settings.payments, paypal),
];

/** Path of a vendor's webhook that is named by its slug. */
export const usualPath = ({ vendor }: Pick<WebhookVendor, 'vendor'>): string => `/v1/webhooks/${vendor}`;
