import { AUTOMATION_WEBHOOK_EVENTS, SECRET_OVERLAP_HOURS } from '../../domain/automation/webhooks';
import { Sql, sql } from '../../kernel/sql';
import { each, eventProjection } from '../runtime/drive/handlers';

const applied = eventProjection({
  name: 'automation-webhooks',
  version: 1,
  // No table is rebuilt: the secrets are in no event.
  tables: [],
  events: [AUTOMATION_WEBHOOK_EVENTS],
  on: {
    'automation_webhook:secret_rotated': each(
      ['automation_id'],
      sql`
      update automation_webhook_secrets s
      set ends_at = e.rotated_at + interval '${new Sql(String(SECRET_OVERLAP_HOURS))} hours'
      from e where s.automation_id = e.automation_id and s.active_since is not null and s.ends_at is null
        and s.secret_hash <> e.secret_hash`,
      sql`
      update automation_webhook_secrets s set active_since = e.rotated_at
      from e where s.automation_id = e.automation_id and s.secret_hash = e.secret_hash and s.active_since is null`,
    ),
  },
});

/** Activates a secret with its event; the earlier one signs for a while longer. */
export const automationWebhooks: typeof applied = {
  ...applied,
  apply: async (batch, tx, mode) => (mode.rebuilding || mode.silent ? [] : applied.apply(batch, tx, mode)),
};
