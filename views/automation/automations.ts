import { z } from 'zod';
import { GraphEdge, GraphNode } from '../../domain/automation/automation-graphs';
import { type Automation as AutomationState, SECOND_RUNS } from '../../domain/automation/automations';
import { FAMILIES } from '../../domain/automation/nodes/node-type';
import type { Queryable } from '../../engines/postgres/port';

const dateTime = z.string().meta({ format: 'date-time' });

/** An automation without its graph. Source: spec extra-facts §16. */
export const AutomationSummary = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    enabled: z.boolean(),
    second_run: z.enum(SECOND_RUNS).describe('Treatment of a run that begins while another one is under way'),
    revision: z.int().describe('Raised by each replacement of the graph'),
    disabled_reason: z.string().nullable().describe('Reason for which the server has disabled the automation'),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'AutomationSummary' });

export const Automation = z
  .object({ ...AutomationSummary.shape, nodes: z.array(GraphNode), edges: z.array(GraphEdge) })
  .meta({ id: 'Automation' });
export type Automation = z.output<typeof Automation>;

export const AutomationNodeType = z
  .object({
    type: z.string().describe('`<family>:<name>`'),
    family: z.enum(FAMILIES),
    summary: z.string(),
    config: z.record(z.string(), z.unknown()).meta({ graphql: 'JSON' }).describe('JSON Schema'),
    outputs: z.array(z.string()),
  })
  .meta({ id: 'AutomationNodeType' });

const COLUMNS = Object.keys(AutomationSummary.shape).join(', ');

/** Undefined for an automation that is not of the account. */
export async function automationOf(db: Queryable, account_id: string, id: string): Promise<Automation | undefined> {
  const [row] = await db.query<z.output<typeof AutomationSummary> & { graph: string }>(
    `select ${COLUMNS}, graph from automations where account_id = $1 and id = $2`,
    [account_id, id],
    'automation',
  );
  if (row === undefined) return undefined;
  const { graph, ...shown } = row;
  return { ...shown, ...(JSON.parse(graph) as Pick<Automation, 'nodes' | 'edges'>) };
}

/** An automation as its stream has it. */
export function shownAutomation({ status: _status, automation_id: id, graph, ...state }: AutomationState): Automation {
  return { id, ...state, nodes: [...graph.nodes], edges: [...graph.edges] };
}
