import { isVendor } from '../../../domain/common/vendors';
import type { Eraser } from '../../../kernel/eraser';
import { createParkedWebhooks } from './parked';

/** Parked deliveries that mention the person. */
export const parkedWebhooksEraser: Eraser = {
  tables: ['ingest_dead_letters'],
  async names({ kind, id }, services) {
    return isVendor(kind) && (await createParkedWebhooks(services).mentions(kind, id));
  },
  async erase({ kind, id }, services) {
    const deleted = isVendor(kind) ? await createParkedWebhooks(services).erase(kind, id) : 0;
    return deleted > 0 ? `${deleted} parked webhooks deleted` : null;
  },
};
