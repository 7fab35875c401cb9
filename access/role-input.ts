import { z } from 'zod';
import { SHOWN } from './names';

/** What a role that operators write is told as: its name, what it is for, and what it grants of a registry. */
export const roleInput = (registry: readonly string[]) => ({
  name: z
    .string({ error: 'Name is required' })
    .trim()
    .regex(SHOWN, 'Name is required')
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

/** A change of a role: what is left out stays as it is. */
export const roleChanges = ({ name, description, permissions }: Fields) => ({
  id: z.uuid(),
  name: name.optional(),
  description: description.describe('Null clears it'),
  permissions: permissions.optional().describe('What the role grants from now on'),
});
