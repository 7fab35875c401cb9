import { z } from 'zod';
import { command, conflict, feature, notFound, permission, post } from '../../app/operation';
import { load } from '../../app/write-path/aggregate-cache';
import { automation, automationStream } from '../../domain/automation/automations';
import { automationWebhook, automationWebhookStream } from '../../domain/automation/webhooks';
import { keepWebhookSecret, newWebhookSecret } from '../../services/automation/automations/webhooks';

export const rotateAutomationWebhookSecret = command({
  name: 'rotateAutomationWebhookSecret',
  summary: 'Replaces the secret that signs the webhooks of an automation; the earlier one signs for 24 hours more',
  rest: post('/v1/automations/{id}/rotate-webhook-secret'),
  guard: [feature('feature:automation'), permission('automations:edit')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ secret: z.string().describe('Shown only here') }).meta({ id: 'AutomationWebhookSecret' }),
  errors: {
    AUTOMATION_NOT_FOUND: notFound('Automation not found'),
    SECRET_NOT_SHOWN: conflict('The secret was made but can no longer be shown; rotate it again'),
  },
  async run({ input: { id }, caller: { account_id }, act, refuse }, services) {
    const stored = (await load(services.events, automation, automationStream(id)))?.state;
    if (stored?.status !== 'active' || stored.account_id !== account_id) throw refuse('AUTOMATION_NOT_FOUND');
    const automation_id = stored.automation_id;
    const made = newWebhookSecret();
    const rotate = { type: 'automation_webhook:rotate_secret', automation_id, account_id } as const;
    const { events } = await act(
      automationWebhook,
      automationWebhookStream(automation_id),
      { ...rotate, secret_hash: made.secret_hash },
      {
        async additionalWrites() {
          await keepWebhookSecret(services, { automation_id, account_id }, made);
          return [];
        },
      },
    );
    if (events[0]?.secret_hash !== made.secret_hash) throw refuse('SECRET_NOT_SHOWN');
    return { secret: made.secret };
  },
});
