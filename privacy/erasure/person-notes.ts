import type { Eraser } from '../../kernel/eraser';

/** Deletes the notes about a person of the chats, in all accounts. */
export const personNotesEraser: Eraser = {
  tables: ['platform_user_notes'],
  async names({ kind, id }, { db }) {
    const found = await db.query(
      'select 1 as one from platform_user_notes where platform_user_id = $2 and platform = $1 limit 1',
      [kind, id],
    );
    return found.length > 0;
  },
  async erase({ kind, id }, { db }) {
    const gone = await db.query(
      'delete from platform_user_notes where platform_user_id = $2 and platform = $1 returning 1 as one',
      [kind, id],
    );
    return gone.length > 0 ? `${gone.length} notes erased` : null;
  },
};
