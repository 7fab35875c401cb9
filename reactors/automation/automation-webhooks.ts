import { reactor } from '../../app/reactor';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { AUTOMATION_EVENTS } from '../../domain/automation/automations';
import {
  DROP_WEBHOOK_FAILURES,
  DROP_WEBHOOK_SECRETS,
  DROP_WEBHOOKS_OF_ACCOUNT,
} from '../../services/automation/automations/webhooks';

/** Secrets and failures of webhooks end with their automation; an update counts failures from the start. */
export const automationWebhookEnds = reactor({
  name: 'automation-webhook-ends',
  from: 'beginning',
  events: [AUTOMATION_EVENTS, ACCOUNT_EVENTS],
  on: {
    'automation:updated': ({ automation_id }, { keep }) => keep(DROP_WEBHOOK_FAILURES, [automation_id]),
    'automation:deleted': ({ automation_id }, { keep }) => {
      keep(DROP_WEBHOOK_FAILURES, [automation_id]);
      keep(DROP_WEBHOOK_SECRETS, [automation_id]);
    },
    'account:dissolved': ({ account_id }, { keep }) => {
      for (const statement of DROP_WEBHOOKS_OF_ACCOUNT) keep(statement, [account_id]);
    },
  },
});
