import type { Eraser } from '../../kernel/eraser';

const TABLES = ['bot_command_user_uses', 'bot_module_acts'];

/** Deletes the cooldowns and warnings of a person of the chats, in all accounts. */
export const botCommandsEraser: Eraser = {
  tables: TABLES,
  async names({ subject }, { db, subject_keys }) {
    const hash = (await subject_keys.hashesOf([subject])).get(subject)!;
    for (const table of TABLES)
      if ((await db.query(`select 1 as one from ${table} where person = $1 limit 1`, [hash])).length > 0) return true;
    return false;
  },
  async erase({ subject }, { db, subject_keys }) {
    const hash = (await subject_keys.hashesOf([subject])).get(subject)!;
    let gone = 0;
    for (const table of TABLES)
      gone += (await db.query(`delete from ${table} where person = $1 returning 1 as one`, [hash])).length;
    return gone > 0 ? `${gone} cooldowns and warnings erased` : null;
  },
};
