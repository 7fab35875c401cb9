import type { Eraser } from '../../kernel/eraser';
import { DELETE_USES_OF_PERSON } from '../../services/automation/command-uses';

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
    const uses = await db.query(`${DELETE_USES_OF_PERSON} returning 1 as one`, [hash]);
    const acts = await db.query('delete from bot_module_acts where person = $1 returning 1 as one', [hash]);
    const gone = uses.length + acts.length;
    return gone > 0 ? `${gone} cooldowns and warnings erased` : null;
  },
};
