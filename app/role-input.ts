import { z } from 'zod';
import { HAS_VISIBLE_CHARACTER } from './name-inputs';

/** Input of an operator's role: name, description, and permissions of a registry. */
export const roleInput = (registry: readonly string[]) => ({
  name: z
    .string({ error: 'Name is required' })
    .trim()
    .regex(HAS_VISIBLE_CHARACTER, 'Name is required')
    .max(100, 'Name must be 100 characters or less'),
  description: z
    .string()
    .trim()
    .max(500, 'Description must be 500 characters or less')
    .nullish()
    .transform((text) => (text === '' ? null : text)),
  permissions: z
    .array(
      z
        .string()
        .max(100)
        .meta({ enum: [...registry] }),
    )
    .max(500),
});

type Fields = ReturnType<typeof roleInput>;

/** Change of a role; an absent member stays. */
export const roleChanges = ({ name, description, permissions }: Fields) => ({
  id: z.uuid(),
  name: name.optional(),
  description: description.describe('Null clears it'),
  permissions: permissions.optional().describe('What the role grants from now on'),
});
