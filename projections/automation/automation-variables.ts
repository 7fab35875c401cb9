import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { AUTOMATION_VARIABLE_EVENTS } from '../../domain/automation/automation-variables';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer, pick } from '../runtime/drive/handlers';

const applied = eventProjection({
  name: 'automation-variables',
  version: 1,
  // No table is rebuilt: runs write values, too, without an event.
  tables: [],
  events: [AUTOMATION_VARIABLE_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'automation_variable:set': lastPer(
      ['account_id', 'name'],
      sql`
      insert into automation_variables (account_id, name, type, value, updated_at)
      select account_id, name, value_type, value, set_at from e order by account_id, name
      on conflict (account_id, name) do update set type = excluded.type, value = excluded.value,
        key_id = null, sealed = null, person = null, updated_at = excluded.updated_at`,
    ),
    'automation_variable:deleted': all(sql`
      delete from automation_variables v using e where v.account_id = e.account_id and v.name = e.name`),
    'account:dissolved': all(sql`delete from automation_variables v using e where v.account_id = e.account_id`),
  },
});

/** Applies the changes of members to the variables, each once. */
export const automationVariables: typeof applied = {
  ...applied,
  apply: async (batch, tx, mode) => (mode.rebuilding || mode.silent ? [] : applied.apply(batch, tx, mode)),
};
