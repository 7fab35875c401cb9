import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { AUTOMATION_EVENTS } from '../../domain/automation/automations';
import type { Graph } from '../../domain/automation/automation-graphs';
import type { StoredEvent } from '../../engines/event-store/port';
import { type Queryable, textArray } from '../../engines/postgres/port';
import { sql } from '../../kernel/sql';
import {
  DROP_AUTOMATION_SCHEDULES,
  DROP_AUTOMATION_SCHEDULES_OF_ACCOUNT,
  scheduleStatements,
} from '../../services/automation/automations/automation-schedules';
import { all, each, eventProjection, pick } from '../runtime/drive/handlers';

/** Types of events or messages that a trigger names. */
const INSERT_TRIGGERS = sql`
  insert into automation_triggers (automation_id, node_id, account_id, type, matches, config)
  select e.automation_id, (n ->> 'id')::uuid, e.account_id, n ->> 'type',
    array(select json_array_elements_text(coalesce(n #> '{config,event_types}', n #> '{config,types}', '[]'))),
    n -> 'config'
  from e cross join lateral json_array_elements(e.graph::json -> 'nodes') n where n ->> 'type' like 'trigger:%'
  on conflict (automation_id, node_id) do nothing`;

const applied = eventProjection({
  name: 'automations',
  version: 2,
  tables: ['automations', 'automation_triggers'],
  events: [AUTOMATION_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'automation:created': all(
      sql`
      insert into automations
        (id, account_id, name, description, enabled, second_run, revision, graph, created_at, updated_at)
      select automation_id, account_id, name, description, enabled, second_run, 0, graph::json, created_at, created_at
      from e on conflict (id) do nothing`,
      INSERT_TRIGGERS,
    ),
    'automation:updated': each(
      ['automation_id'],
      sql`
      update automations a set name = e.name, description = e.description, enabled = e.enabled,
        second_run = e.second_run, disabled_reason = e.disabled_reason, updated_at = e.updated_at
      from e where a.id = e.automation_id`,
    ),
    'automation:graph_replaced': each(
      ['automation_id'],
      sql`
      update automations a set revision = e.revision, graph = e.graph::json, updated_at = e.replaced_at
      from e where a.id = e.automation_id`,
      sql`delete from automation_triggers t using e where t.automation_id = e.automation_id`,
      INSERT_TRIGGERS,
    ),
    'automation:deleted': all(
      sql`delete from automations a using e where a.id = e.automation_id`,
      sql`delete from automation_triggers t using e where t.automation_id = e.automation_id`,
    ),
    'account:dissolved': all(
      sql`delete from automations a using e where a.account_id = e.account_id`,
      sql`delete from automation_triggers t using e where t.account_id = e.account_id`,
    ),
  },
});

/** Automations with their graphs, the triggers of the graphs, and due times, which no rebuild makes. */
export const automations: typeof applied = {
  ...applied,
  async apply(batch, tx, mode) {
    const messages = await applied.apply(batch, tx, mode);
    if (!mode.rebuilding && !mode.silent) await setSchedules(batch, tx);
    return messages;
  },
};

interface Row extends Record<string, unknown> {
  automation_id: string;
  account_id: string;
  graph: string;
}

/** Sets the schedules of enabled automations; those of disabled and deleted ones end. */
async function setSchedules(batch: readonly StoredEvent[], tx: Queryable): Promise<void> {
  const changed = new Set<string>();
  for (const { type, data } of batch) {
    if (type === 'account:dissolved') {
      await tx.query(DROP_AUTOMATION_SCHEDULES_OF_ACCOUNT, [data['account_id']]);
      continue;
    }
    const automation_id = data['automation_id'] as string;
    changed.add(automation_id);
    if (data['enabled'] === false || type === 'automation:deleted')
      await tx.query(DROP_AUTOMATION_SCHEDULES, [automation_id]);
  }
  if (changed.size === 0) return;
  const enabled = await tx.query<Row>(
    `select id as automation_id, account_id, graph from automations
     where id = any($1::text[]::uuid[]) and enabled order by id`,
    [textArray([...changed])],
    'automations-scheduled',
  );
  const now_ms = Date.now();
  for (const row of enabled)
    for (const [statement, values] of scheduleStatements({ ...row, graph: JSON.parse(row.graph) as Graph }, now_ms))
      await tx.query(statement, values);
}
