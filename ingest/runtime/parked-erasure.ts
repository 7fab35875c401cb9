import { isVendor } from '../../domain/vendors';
import type { Eraser } from '../../kernel/eraser';
import { createParkedWebhooks } from './parked';

/** Parked webhooks that mention the person. */
export const parkedWebhooksEraser: Eraser = {
  tables: ['ingest_dead_letters'],
  async erase({ kind, id }, { db }) {
    return isVendor(kind) ? `${await createParkedWebhooks({ db }).erase(kind, id)} parked webhooks deleted` : null;
  },
};
