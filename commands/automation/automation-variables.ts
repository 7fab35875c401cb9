import { z } from 'zod';
import { command, conflict, del, feature, invalid, notFound, permission, put } from '../../app/operation';
import {
  automationVariables,
  automationVariablesStream,
  MAX_VARIABLES,
  VARIABLE_TYPES,
  variableName,
  variableType,
} from '../../domain/automation/automation-variables';
import { claimVariable, hasVariable, readVariables } from '../../services/automation/automations/variables';
import { AutomationVariable, variableValueInput } from '../../views/automation/automation-variables';

const guard = [feature('feature:automation'), permission('automations:edit')] as const;

export const setAutomationVariable = command({
  name: 'setAutomationVariable',
  summary: 'Sets a variable of the automations of the account',
  rest: put('/v1/automations/variables/{name}'),
  guard,
  input: z.object({ name: variableName, type: z.enum(VARIABLE_TYPES), value: variableValueInput }),
  output: AutomationVariable,
  errors: {
    OTHER_TYPE: invalid('value must be of the type {type}'),
    TOO_MANY_VARIABLES: conflict(`An account has at most ${MAX_VARIABLES} variables`),
  },
  async run({ input: { name, type, value }, caller: { account_id }, act, refuse }, services) {
    if (variableType(value) !== type) throw refuse('OTHER_TYPE', { type });
    const variable = { account_id, name };
    const set = { type: 'automation_variable:set', ...variable, value } as const;
    const { events } = await act(automationVariables, automationVariablesStream(account_id), set, {
      async additionalWrites() {
        const claimed = await services.db.transaction((tx) => claimVariable(tx, variable));
        if (!claimed) throw refuse('TOO_MANY_VARIABLES');
        return [];
      },
    });
    const [shown] = await readVariables(services, account_id, [name]);
    if (shown !== undefined) return shown;
    const updated_at = events.flatMap((event) => (event.type === 'automation_variable:set' ? event.set_at : []))[0]!;
    return { name, type, value, updated_at };
  },
});

export const deleteAutomationVariable = command({
  name: 'deleteAutomationVariable',
  summary: 'Deletes a variable of the automations of the account',
  rest: del('/v1/automations/variables/{name}'),
  guard,
  input: z.object({ name: variableName }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteAutomationVariableResult' }),
  errors: { VARIABLE_NOT_FOUND: notFound('Variable not found') },
  async run({ input: { name }, caller: { account_id }, act, refuse }, { db }) {
    const variable = { account_id, name };
    const remove = { type: 'automation_variable:delete', ...variable } as const;
    await act(automationVariables, automationVariablesStream(account_id), remove, {
      async additionalWrites() {
        if (!(await hasVariable(db, variable))) throw refuse('VARIABLE_NOT_FOUND');
        return [];
      },
    });
    return { success: true };
  },
});
