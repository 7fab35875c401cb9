import type { Eraser } from '../../kernel/eraser';

/** Ends open runs about a person, and deletes the values of the person and the cooldowns, in all accounts. */
export const automationRunsEraser: Eraser = {
  tables: ['automation_runs', 'automation_steps', 'automation_cooldowns'],
  async names({ subject }, { db, subject_keys }) {
    const hash = (await subject_keys.hashesOf([subject])).get(subject)!;
    const found = await db.query(
      `select 1 as one from automation_runs where persons @> array[$1]::text[]
       union all select 1 from automation_cooldowns where person = $1 limit 1`,
      [hash],
    );
    return found.length > 0;
  },
  async erase({ subject }, { db, subject_keys }) {
    const hash = (await subject_keys.hashesOf([subject])).get(subject)!;
    const steps = await db.query(
      `update automation_steps s set input = null, input_key_id = null,
         status = case when s.status in ('pending', 'running', 'waiting') then 'cancelled' else s.status end,
         finished_at = coalesce(s.finished_at, now())
       from automation_runs r where r.id = s.run_id and r.persons @> array[$1]::text[] returning 1 as one`,
      [hash],
    );
    const runs = await db.query(
      `update automation_runs set cause = null, cause_key_id = null, persons = array_remove(persons, $1),
         status = case when status in ('pending', 'running', 'waiting') then 'cancelled' else status end,
         finished_at = coalesce(finished_at, now())
       where persons @> array[$1]::text[] returning 1 as one`,
      [hash],
    );
    const gone = await db.query('delete from automation_cooldowns where person = $1 returning 1 as one', [hash]);
    const erased = steps.length + runs.length + gone.length;
    return erased === 0 ? null : `${runs.length} runs of automations and ${gone.length} cooldowns erased`;
  },
};
