import { z } from 'zod';
import { feature, get, permission, query, whole } from '../../app/operation';
import { readVariables } from '../../services/automation/automations/variables';
import { AutomationVariable } from '../../views/automation/automation-variables';

export const automationVariables = query({
  name: 'automationVariables',
  summary: 'Variables of the automations of the account',
  rest: get('/v1/automations/variables'),
  pages: whole(),
  guard: [feature('feature:automation'), permission('automations:read')],
  input: z.object({}),
  output: AutomationVariable,
  run: ({ caller: { account_id } }, services) => readVariables(services, account_id),
});
