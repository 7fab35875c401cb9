import { z } from 'zod';
import { feature, get, notFound, permission, query } from '../../app/operation';
import { AutomationDocument, documentOf } from '../../domain/automation/automation-documents';
import { automationOf } from '../../views/automation/automations';

export const automationExport = query({
  name: 'automationExport',
  summary: 'An automation as a document for other accounts, without ids, secrets and addresses',
  rest: get('/v1/automations/{id}/export', { envelope: 'bare' }),
  guard: [feature('feature:automation'), permission('automations:read')],
  input: z.object({ id: z.uuid() }),
  output: AutomationDocument,
  errors: { AUTOMATION_NOT_FOUND: notFound('Automation not found') },
  async run({ input: { id }, caller, refuse }, { db }) {
    const found = await automationOf(db, caller.account_id, id);
    if (found === undefined) throw refuse('AUTOMATION_NOT_FOUND');
    return documentOf(found);
  },
});
