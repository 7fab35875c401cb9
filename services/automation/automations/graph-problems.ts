import type { Services } from '../../../app/services';
import { type CheckOptions, type Graph, graphProblem } from '../../../domain/automation/automation-graphs';
import { missingReference } from './references';

/** Problem of a graph, or of the things of the account that it names; null without one. */
export async function graphProblemOf(
  services: Pick<Services, 'db' | 'settings' | 'discord'>,
  account_id: string,
  graph: Graph,
  options: Pick<CheckOptions, 'may_lack'> = {},
): Promise<string | null> {
  const problem = graphProblem(graph, { ...options, allow_loopback: services.settings.outgoing.allow_loopback });
  if (problem !== null) return problem;
  const missing = await missingReference(services, account_id, graph);
  if (missing === undefined) return null;
  const { node_id, member, kind, id } = missing;
  return `node ${node_id}: config.${member}: the account has no ${kind.replace('_', ' ')} ${id}`;
}
