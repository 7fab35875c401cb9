import type { Graph } from '../../../domain/automation/automation-graphs';
import type { RunStart } from '../../../domain/automation/automation-runs';
import type { Queryable } from '../../../engines/postgres/port';
import { hasAutomations } from './work';

/** The graph at which a run begins; undefined where the automation is disabled or has none of the triggers any more. */
export async function startable(
  db: Pick<Queryable, 'query'>,
  {
    account_id,
    automation_id,
    node_ids,
    trigger,
  }: Pick<RunStart, 'account_id' | 'automation_id' | 'node_ids' | 'trigger'>,
): Promise<{ graph: Graph; second_run: string; node_ids: string[] } | undefined> {
  const [row] = await db.query<{ graph: string; second_run: string }>(
    `select graph, second_run from automations where account_id = $1 and id = $2 and enabled`,
    [account_id, automation_id],
    'automation-startable',
  );
  if (row === undefined || !(await hasAutomations(db, account_id))) return undefined;
  const graph = JSON.parse(row.graph) as Graph;
  const triggers = graph.nodes.filter(({ type }) => type === trigger).map(({ id }) => id);
  const begun = node_ids.length === 0 ? triggers : triggers.filter((id) => node_ids.includes(id));
  return begun.length === 0 ? undefined : { graph, second_run: row.second_run, node_ids: begun };
}
