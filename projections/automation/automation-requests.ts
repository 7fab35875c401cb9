import { CAUSE_MS, START_AUTOMATION } from '../../domain/automation/automation-runs';
import type { AutomationRunEvent } from '../../domain/automation/automation-runs';
import { manually } from '../../domain/automation/nodes/triggers';
import type { StoredEvent } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';
import { type ApplyMode, domainEvents, projection } from '../../kernel/projection';

/** Inserts runs that were started by hand, and starts them. It has no rows that a rebuild makes. */
export const automationRequests = projection({
  name: 'automation-requests',
  version: 1,
  from: domainEvents(['automation_run:requested']),
  tables: [],
  jobs: [START_AUTOMATION],
  async apply(batch: readonly StoredEvent[], tx: Queryable, mode: ApplyMode) {
    const { enqueue } = mode;
    if (enqueue === undefined || mode.rebuilding || mode.silent) return [];
    for (const { data } of batch) {
      const { run_id, automation_id, account_id, permissions, requested_at } = data as unknown as AutomationRunEvent;
      const start_key = `run:${run_id}`;
      const at_ms = Date.parse(requested_at);
      await tx.query(
        `insert into automation_runs
           (id, account_id, automation_id, start_key, admitted, status, trigger, node_ids, depth, second_run, graph,
            persons, permissions, window_ms, expires_at, created_at)
         values ($1, $2, $3, $4, false, 'pending', $5, '{}', 0, 'parallel', '{"nodes":[],"edges":[]}', '{}',
           $6::text[], ${CAUSE_MS}, to_timestamp($7::float8 / 1000) + interval '${CAUSE_MS} milliseconds', $8)
         on conflict (id) do nothing`,
        [run_id, account_id, automation_id, start_key, manually.type, permissions, at_ms, requested_at],
      );
      const payload = {
        ...{ account_id, automation_id, run_id, start_key, trigger: manually.type, node_ids: [], event_id: null },
        ...{ depth: 0, at_ms, window_ms: CAUSE_MS, permissions, persons: [], subject: null, cause: null },
      };
      await enqueue(tx, [{ name: START_AUTOMATION, key: start_key, payload }]);
    }
    return [];
  },
});
