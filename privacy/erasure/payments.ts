import { TOPICS } from '../../domain/common/records';
import type { RecordEraser } from '../../kernel/eraser';

/** Deletes a payer's objects: all records of one object are about one person, and an erased record has no content. */
export const paymentsEraser: RecordEraser = {
  projection: 'payment-objects',
  topic: TOPICS.webhook_events,
  tables: ['payment_objects'],
  async erase(tx, records) {
    const gone = await tx.query('delete from payment_objects where record_id = any($1::uuid[]) returning 1 as one', [
      records.map(({ id }) => id),
    ]);
    return gone.length;
  },
  async messages() {
    return new Map();
  },
};
