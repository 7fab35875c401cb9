import type { Eraser } from '../../kernel/eraser';

/** Deletes the cooldowns of a person of the chats, in all accounts. */
export const botCommandsEraser: Eraser = {
  tables: ['bot_command_user_uses'],
  async names({ subject }, { db, subject_keys }) {
    const hash = (await subject_keys.hashesOf([subject])).get(subject)!;
    const found = await db.query('select 1 as one from bot_command_user_uses where person = $1 limit 1', [hash]);
    return found.length > 0;
  },
  async erase({ subject }, { db, subject_keys }) {
    const hash = (await subject_keys.hashesOf([subject])).get(subject)!;
    const gone = await db.query('delete from bot_command_user_uses where person = $1 returning 1 as one', [hash]);
    return gone.length > 0 ? `${gone.length} cooldowns erased` : null;
  },
};
