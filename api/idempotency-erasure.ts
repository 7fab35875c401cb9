import type { Eraser } from '../kernel/eraser';

/**
 * The answers that are kept for a user's `Idempotency-Key`s. Whom else an answer mentions nobody can find: it is
 * encrypted under the key that its caller alone has, and it goes within 24 hours.
 */
export const answersEraser: Eraser = {
  tables: ['idempotency_keys'],
  async erase({ kind, id }, { db }) {
    if (kind !== 'user') return null;
    const gone = await db.query('delete from idempotency_keys where user_id = $1 returning 1 as one', [id]);
    return gone.length === 0 ? null : `${gone.length} kept answers deleted`;
  },
};
