import { z } from 'zod';
import { variableName } from '../automation-variables';
import { action, anyTemplate, template } from './node-type';

export const setVariable = action('set_variable', {
  summary: 'Sets a variable of the account, and creates a missing one.',
  config: {
    name: variableName,
    value: z.union([anyTemplate, z.number(), z.boolean()]).describe('A text is a template'),
  },
});

export const addToVariable = action('add_to_variable', {
  summary: 'Adds to a variable of the type number, and creates a missing one at 0.',
  config: { name: variableName, amount: z.union([z.number(), template]).describe('A number, or a template of one') },
});
