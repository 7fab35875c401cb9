import type { Eraser } from '../../kernel/eraser';

/** Deletes the variables of automations whose text is about a person, in all accounts. */
export const automationVariablesEraser: Eraser = {
  tables: ['automation_variables'],
  async names({ subject }, { db, subject_keys }) {
    const hash = (await subject_keys.hashesOf([subject])).get(subject)!;
    const found = await db.query('select 1 as one from automation_variables where person = $1 limit 1', [hash]);
    return found.length > 0;
  },
  async erase({ subject }, { db, subject_keys }) {
    const hash = (await subject_keys.hashesOf([subject])).get(subject)!;
    const gone = await db.query('delete from automation_variables where person = $1 returning 1 as one', [hash]);
    return gone.length > 0 ? `${gone.length} variables of automations erased` : null;
  },
};
