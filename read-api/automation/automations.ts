import { z } from 'zod';
import { feature, get, notFound, numbered, permission, query, rowsOf, whole } from '../../app/operation';
import { NODE_TYPES } from '../../domain/automation/node-types';
import { Automation, AutomationNodeType, automationOf, AutomationSummary } from '../../views/automation/automations';

const guard = [feature('feature:automation'), permission('automations:read')] as const;

export const automations = query({
  name: 'automations',
  summary: 'Automations of the account without their graphs, oldest first',
  rest: get('/v1/automations'),
  pages: numbered('PaginatedAutomationResult'),
  guard: [...guard],
  input: z.object({}),
  output: AutomationSummary,
  run: ({ caller, page }, { db }) =>
    rowsOf(db, page, AutomationSummary, {
      ...{ from: 'automations where account_id = $1', order: 'created_at, id', values: [caller.account_id] },
    }),
});

export const automation = query({
  name: 'automation',
  summary: 'One automation with its graph',
  rest: get('/v1/automations/{id}'),
  guard: [...guard],
  input: z.object({ id: z.uuid() }),
  output: Automation,
  errors: { AUTOMATION_NOT_FOUND: notFound('Automation not found') },
  async run({ input: { id }, caller, refuse }, { db }) {
    const found = await automationOf(db, caller.account_id, id);
    if (found === undefined) throw refuse('AUTOMATION_NOT_FOUND');
    return found;
  },
});

const SHOWN_TYPES = [...NODE_TYPES.values()].map(({ type, family, summary, config, outputs }) => ({
  ...{ type, family, summary, outputs: [...outputs] },
  config: z.toJSONSchema(config, { io: 'input' }) as Record<string, unknown>,
}));

export const automationNodeTypes = query({
  name: 'automationNodeTypes',
  summary: 'Types of the nodes that graphs are made of',
  rest: get('/v1/automations/node-types'),
  pages: whole(),
  guard: [...guard],
  input: z.object({}),
  output: AutomationNodeType,
  run: async () => SHOWN_TYPES,
});
