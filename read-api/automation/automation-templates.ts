import { z } from 'zod';
import { feature, invalid, permission, post, query } from '../../app/operation';
import {
  MAX_TEMPLATE_BYTES,
  templateNames,
  templatePermissions as permissionsOf,
} from '../../domain/automation/templates/expand';

const guard = [feature('feature:automation'), permission('automations:read')] as const;
const input = z.object({ template: z.string() });
const errors = { TEMPLATE_TOO_LONG: invalid(`template must have at most ${MAX_TEMPLATE_BYTES / 1024} KiB`) };
const isTooLong = (template: string): boolean => Buffer.byteLength(template) > MAX_TEMPLATE_BYTES;

export const templateVariables = query({
  name: 'templateVariables',
  summary: 'Names of the values that a template reads',
  rest: post('/v1/automations/templates/variables'),
  guard,
  input,
  output: z.object({ variables: z.array(z.string()) }).meta({ id: 'TemplateVariables' }),
  errors,
  async run({ input: { template }, refuse }) {
    if (isTooLong(template)) throw refuse('TEMPLATE_TOO_LONG');
    return { variables: templateNames(template) };
  },
});

export const templatePermissions = query({
  name: 'templatePermissions',
  summary: 'Permissions that a user needs so that a run by hand reads all values of a template',
  rest: post('/v1/automations/templates/permissions'),
  guard,
  input,
  output: z.object({ permissions: z.array(z.string()) }).meta({ id: 'TemplatePermissions' }),
  errors,
  async run({ input: { template }, refuse }) {
    if (isTooLong(template)) throw refuse('TEMPLATE_TOO_LONG');
    return { permissions: permissionsOf(template) };
  },
});
