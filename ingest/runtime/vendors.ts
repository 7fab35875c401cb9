import type { Settings } from '../../kernel/settings';
import { createKickWebhook } from '../kick';
import { createShopifyWebhook } from '../shopify';
import { createTrovoWebhook } from '../trovo';
import { createYoutubeWebhook } from '../youtube';
import type { WebhookVendor } from './webhook';

/** @throws Error that names the setting when a key is unreadable */
export const vendors = (settings: Settings['webhooks']): WebhookVendor[] => [
  createYoutubeWebhook(settings),
  createKickWebhook(settings),
  createTrovoWebhook(settings),
  createShopifyWebhook(settings),
];
