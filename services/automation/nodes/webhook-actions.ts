import { MAX_WEBHOOK_BYTES } from '../../../domain/automation/nodes/webhooks';
import { leadsElsewhere } from '../../../domain/automation/webhooks';
import { asJsonString, asUrlPart } from '../../../domain/automation/templates/expand';
import type { RunCause } from '../../../domain/automation/automation-runs';
import { parsedJson } from '../../../lib/json/paths';
import { noteWebhook } from '../automations/webhooks';
import { type Executor, failed } from './executor';

/** Body with the cause's event, or an empty object without an event that the run may read. Numbers keep every digit. */
function eventBody({ event }: RunCause, permissions: readonly string[] | null): string {
  if (event === null || permissions?.includes('events:read') === false) return '{}';
  const { raw, ...named } = event;
  const payload = parsedJson(raw) === null ? 'null' : raw;
  return `${JSON.stringify(named).slice(0, -1)},"raw":${payload}}`;
}

/** Sends one signed webhook for a step, and counts its outcome for the automation. */
export const postWebhook: Executor = {
  calls: true,
  input: ({ config, cause, permissions, expand }) => ({
    url: expand(config.url as string, asUrlPart),
    body: config.body === undefined ? eventBody(cause, permissions) : expand(config.body as string, asJsonString),
  }),
  async run({ account_id, automation_id, step_id, config }, input, { webhooks }) {
    const { url, body } = input as { url: string; body: string };
    // Rewards have no secret.
    if (automation_id === null) return failed('no_secret');
    if (leadsElsewhere(config.url as string, url)) return failed('other_path');
    if (Buffer.byteLength(body) > MAX_WEBHOOK_BYTES) return failed('body_too_large');
    const of = { automation_id, account_id };
    const result = await webhooks.send({ ...of, id: step_id, url, body });
    return {
      status: 'succeeded',
      async output(tx) {
        await noteWebhook(tx, of, result.status === 'sent');
        return result.status === 'sent' ? 'done' : result;
      },
    };
  },
};
