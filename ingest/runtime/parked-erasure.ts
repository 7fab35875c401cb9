import { isVendor } from '../../domain/vendors';
import type { Eraser } from '../../kernel/eraser';
import { createParkedWebhooks } from './parked';

/** Parked deliveries that mention the person. */
export const parkedWebhooksEraser: Eraser = {
  tables: ['ingest_dead_letters'],
  async erase({ kind, id }, services) {
    return isVendor(kind) ? `${await createParkedWebhooks(services).erase(kind, id)} parked webhooks deleted` : null;
  },
};
