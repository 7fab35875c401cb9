import { TOPICS } from '../domain/records';
import type { RecordEraser } from '../kernel/eraser';

/** A payer's objects go: all records of one object are about one person, and an erased record says nothing. */
export const paymentsEraser: RecordEraser = {
  projection: 'payment-objects',
  topic: TOPICS.webhook_events,
  tables: ['payment_objects'],
  async erase(tx, record_ids) {
    const gone = await tx.query('delete from payment_objects where record_id = any($1::uuid[]) returning 1 as one', [
      record_ids,
    ]);
    return gone.length;
  },
  async messages() {
    return new Map();
  },
};
