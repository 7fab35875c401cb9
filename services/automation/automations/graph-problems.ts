import type { Services } from '../../../app/services';
import { type CheckOptions, type Graph, graphProblem } from '../../../domain/automation/automation-graphs';
import { missingReference } from './references';

/** Problem of a graph, or of the things of the account that it names; null without one. */
export async function graphProblemOf(
  { db, settings }: Pick<Services, 'db' | 'settings'>,
  account_id: string,
  graph: Graph,
  options: Pick<CheckOptions, 'may_lack'> = {},
): Promise<string | null> {
  const problem = graphProblem(graph, { ...options, allow_loopback: settings.outgoing.allow_loopback });
  if (problem !== null) return problem;
  const missing = await missingReference(db, account_id, graph);
  return missing === undefined ? null : `node ${missing.node_id}: the account has no ${missing.kind} ${missing.id}`;
}
