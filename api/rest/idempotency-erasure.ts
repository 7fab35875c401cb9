import type { Eraser } from '../../kernel/eraser';

/**
 * Erases the stored answers of a user's `Idempotency-Key`s. Other persons in an answer cannot be searched for: the
 * answer is encrypted under a key that only its caller has, and is deleted within 24 hours.
 */
export const answersEraser: Eraser = {
  tables: ['idempotency_keys'],
  async names({ kind, id }, { db }) {
    if (kind !== 'user') return false;
    return (await db.query('select 1 as one from idempotency_keys where user_id = $1 limit 1', [id])).length > 0;
  },
  async erase({ kind, id }, { db }) {
    if (kind !== 'user') return null;
    const gone = await db.query('delete from idempotency_keys where user_id = $1 returning 1 as one', [id]);
    return gone.length === 0 ? null : `${gone.length} kept answers deleted`;
  },
};
