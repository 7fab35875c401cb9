import { z } from 'zod';
import { automationDescriptionInput, automationNameInput } from '../../app/automation-input';
import { command, conflict, feature, invalid, permission, post } from '../../app/operation';
import { sizeProblem } from '../../domain/automation/automation-graphs';
import { MAX_AUTOMATIONS } from '../../domain/automation/automation-counts';
import {
  DOCUMENT_FORMAT,
  DOCUMENT_VERSION,
  documentGraph,
  DocumentEdgeInput,
  DocumentNodeInput,
  withIds,
} from '../../domain/automation/automation-documents';
import { automation, type AutomationEvent, automationStream, SECOND_RUNS } from '../../domain/automation/automations';
import { automationCountWrites } from '../../services/automation/automations/automation-counts';
import { graphProblemOf } from '../../services/automation/automations/graph-problems';
import { Automation, shownAutomation } from '../../views/automation/automations';

export const importAutomation = command({
  name: 'importAutomation',
  summary: 'Makes a disabled automation of a document; its nodes may lack ids and addresses until it is enabled',
  rest: post('/v1/automations/import', { status: 201, location: ({ id }: Automation) => `/v1/automations/${id}` }),
  graphql: { argument: 'input' },
  guard: [feature('feature:automation'), permission('automations:create')],
  input: z
    .object({
      format: z.literal(DOCUMENT_FORMAT),
      version: z.literal(DOCUMENT_VERSION),
      name: automationNameInput,
      description: automationDescriptionInput.nullish(),
      second_run: z.enum(SECOND_RUNS).nullish().describe('Default `parallel`'),
      nodes: z.array(DocumentNodeInput),
      edges: z.array(DocumentEdgeInput),
    })
    .meta({ id: 'AutomationDocumentInput' }),
  output: Automation,
  errors: {
    BAD_GRAPH: invalid('{problem}'),
    TOO_MANY_AUTOMATIONS: conflict(`An account has at most ${MAX_AUTOMATIONS} automations`),
  },
  async run({ input, caller: { account_id }, context, act, newId, refuse }, services) {
    const local = documentGraph(input.nodes, input.edges);
    const local_problem = await graphProblemOf(services, account_id, local, { may_lack: true });
    if (local_problem !== null) throw refuse('BAD_GRAPH', { problem: local_problem });
    const ids = new Map(local.nodes.map(({ id }) => [id, newId(`automation-node ${id}`)]));
    const graph = withIds(local, (id) => ids.get(id)!);
    // Its ids are longer than those of the document.
    const problem = sizeProblem(graph);
    if (problem !== null) throw refuse('BAD_GRAPH', { problem });
    const automation_id = newId('automation');
    const { state } = await act(
      automation,
      automationStream(automation_id),
      {
        ...{ type: 'automation:create', automation_id, account_id, name: input.name, enabled: false },
        ...{ description: input.description || null, second_run: input.second_run ?? 'parallel' },
        graph,
      },
      {
        additionalWrites: (made: readonly AutomationEvent[]) => automationCountWrites(context, services.events, made),
      },
    );
    return shownAutomation(state);
  },
});
