import { z } from 'zod';
import { automationDescriptionInput, automationNameInput } from '../../app/automation-input';
import { command, conflict, del, feature, invalid, notFound, patch, permission, post, put } from '../../app/operation';
import type { Refuse } from '../../app/operation';
import { GraphEdge, GraphNode, type Graph, withOutputs } from '../../domain/automation/automation-graphs';
import { MAX_AUTOMATIONS } from '../../domain/automation/automation-counts';
import {
  automation,
  type Automation as AutomationState,
  type AutomationEvent,
  automationStream,
  SECOND_RUNS,
} from '../../domain/automation/automations';
import { automationCountWrites } from '../../services/automation/automations/automation-counts';
import { graphProblemOf } from '../../services/automation/automations/graph-problems';
import { Automation, shownAutomation } from '../../views/automation/automations';

const AUTOMATION = feature('feature:automation');
const NOT_FOUND = { AUTOMATION_NOT_FOUND: notFound('Automation not found') };
const INCOMPLETE = { AUTOMATION_INCOMPLETE: invalid('These nodes are incomplete: {nodes}') };
const BAD_GRAPH = { BAD_GRAPH: invalid('{problem}') };

const changes = {
  description: automationDescriptionInput.nullish(),
  enabled: z.boolean().nullish().describe('Default false'),
  second_run: z.enum(SECOND_RUNS).nullish().describe('Default `parallel`'),
};

/** Refuses automations of other accounts. */
const ownedBy = (account_id: string, refuse: Refuse<typeof NOT_FOUND>) => (state: AutomationState) =>
  (state.status !== 'active' || state.account_id !== account_id) && refuse('AUTOMATION_NOT_FOUND');

export const createAutomation = command({
  name: 'createAutomation',
  summary: 'Makes an automation with an empty graph',
  rest: post('/v1/automations', { status: 201, location: ({ id }: Automation) => `/v1/automations/${id}` }),
  graphql: { argument: 'input' },
  guard: [AUTOMATION, permission('automations:create')],
  input: z.object({ name: automationNameInput, ...changes }).meta({ id: 'CreateAutomationInput' }),
  output: Automation,
  errors: { TOO_MANY_AUTOMATIONS: conflict(`An account has at most ${MAX_AUTOMATIONS} automations`) },
  async run({ input, caller: { account_id }, context, act, newId }, { events }) {
    const automation_id = newId('automation');
    const { state } = await act(
      automation,
      automationStream(automation_id),
      {
        ...{ type: 'automation:create', automation_id, account_id, name: input.name },
        ...{ description: input.description || null, enabled: input.enabled ?? false },
        second_run: input.second_run ?? 'parallel',
      },
      { additionalWrites: (made: readonly AutomationEvent[]) => automationCountWrites(context, events, made) },
    );
    return shownAutomation(state);
  },
});

export const updateAutomation = command({
  name: 'updateAutomation',
  summary: 'Changes an automation; absent members stay',
  rest: patch('/v1/automations/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [AUTOMATION, permission('automations:edit')],
  input: z
    .object({ id: z.uuid(), name: automationNameInput.nullish(), ...changes })
    .meta({ id: 'UpdateAutomationInput' }),
  output: Automation,
  errors: { ...NOT_FOUND, ...INCOMPLETE },
  async run({ input, caller: { account_id }, act, refuse }) {
    const changed = {
      name: input.name ?? undefined,
      description: input.description === undefined ? undefined : input.description || null,
      enabled: input.enabled ?? undefined,
      second_run: input.second_run ?? undefined,
    };
    const update = { type: 'automation:update', changes: changed } as const;
    const options = { precondition: ownedBy(account_id, refuse) };
    const { state } = await act(automation, automationStream(input.id), update, options);
    return shownAutomation(state);
  },
});

export const deleteAutomation = command({
  name: 'deleteAutomation',
  summary: 'Deletes an automation and ends its runs',
  rest: del('/v1/automations/{id}'),
  guard: [AUTOMATION, permission('automations:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteAutomationResult' }),
  errors: NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, context, act, refuse }, { events }) {
    await act(
      automation,
      automationStream(id),
      { type: 'automation:delete' },
      {
        precondition: ownedBy(account_id, refuse),
        additionalWrites: (made: readonly AutomationEvent[]) => automationCountWrites(context, events, made),
      },
    );
    return { success: true };
  },
});

const NodeInput = z
  .object({ ...GraphNode.shape, x: z.number().nullish(), y: z.number().nullish() })
  .meta({ id: 'AutomationNodeInput' });
const EdgeInput = z
  .object({ ...GraphEdge.shape, output: z.string().max(50).nullish().describe('Default: the first of the node') })
  .meta({ id: 'AutomationEdgeInput' });
type GraphInput = { nodes: z.output<typeof NodeInput>[]; edges: z.output<typeof EdgeInput>[] };

/** The graph of an input: ids in lower case, with the outputs of all edges. */
function graphOf({ nodes, edges }: GraphInput): Graph {
  const lower = nodes.map(({ id, type, config, x, y }) => ({
    ...{ id: id.toLowerCase(), type, config },
    ...(typeof x === 'number' && { x }),
    ...(typeof y === 'number' && { y }),
  }));
  const lowerEdges = edges.map((edge) => ({ ...edge, from: edge.from.toLowerCase(), to: edge.to.toLowerCase() }));
  return { nodes: lower, edges: withOutputs(lower, lowerEdges) };
}

export const replaceAutomationGraph = command({
  name: 'replaceAutomationGraph',
  summary: 'Replaces the graph of an automation; runs keep the graph that they began with',
  rest: put('/v1/automations/{id}/graph'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [AUTOMATION, permission('automations:edit')],
  input: z
    .object({
      id: z.uuid(),
      revision: z.int().min(0).describe('The stored one'),
      nodes: z.array(NodeInput),
      edges: z.array(EdgeInput),
    })
    .meta({ id: 'ReplaceAutomationGraphInput' }),
  output: Automation,
  errors: { ...NOT_FOUND, ...BAD_GRAPH, STALE_REVISION: conflict('The graph was replaced meanwhile: read it again') },
  async run({ input: { id, revision, ...input }, caller: { account_id }, act, refuse }, services) {
    const graph = graphOf(input);
    const precondition = ownedBy(account_id, refuse);
    const problem = await graphProblemOf(services, account_id, graph);
    const { state } = await act(
      automation,
      automationStream(id),
      { type: 'automation:replace_graph', revision, graph },
      {
        precondition: (stored: AutomationState) =>
          precondition(stored) || (problem !== null && refuse('BAD_GRAPH', { problem })),
      },
    );
    return shownAutomation(state);
  },
});
