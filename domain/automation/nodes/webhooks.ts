import { z } from 'zod';
import { isJsonTemplate } from '../webhooks';
import { action } from './node-type';

/** Bytes of a body, before and after its values are filled in. */
export const MAX_WEBHOOK_BYTES = 64 * 1024;

export const sendWebhook = action('send_webhook', {
  summary: 'Sends a signed JSON document to an address, by Standard Webhooks.',
  config: {
    url: z.string().min(1).max(2_000).describe('https, port 443, a public host; path and query are a template'),
    body: z
      .string()
      .max(MAX_WEBHOOK_BYTES)
      .refine(isJsonTemplate, 'must be JSON with its variables inside strings')
      .optional()
      .describe('JSON text whose strings are templates; default: the event'),
  },
  addresses: ['url'],
});
