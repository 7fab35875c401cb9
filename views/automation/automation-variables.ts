import { z } from 'zod';
import { MAX_VARIABLE_TEXT, VARIABLE_TYPES } from '../../domain/automation/automation-variables';

export const variableValueInput = z
  .union([z.number(), z.string().max(MAX_VARIABLE_TEXT), z.boolean()])
  .describe('Of the type')
  .meta({ graphql: 'JSON' });

/** A variable of an account's automations. */
export const AutomationVariable = z
  .object({
    name: z.string(),
    type: z.enum(VARIABLE_TYPES),
    value: variableValueInput,
    updated_at: z.string(),
  })
  .meta({ id: 'AutomationVariable' });
export type AutomationVariable = z.output<typeof AutomationVariable>;
