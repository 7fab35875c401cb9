import { z } from 'zod';
import { RUN_STATUSES } from '../../domain/automation/automation-runs';
import { permission } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

const Run = z.object({
  type: z.string(),
  automation_id: z.uuid().optional(),
  reward_id: z.uuid().optional(),
  run_id: z.uuid(),
  status: z.enum(RUN_STATUSES),
  node_id: z.uuid().optional().describe('Of a step'),
});

export const automations = channel({
  pattern: 'automations:<account_id>',
  summary: "What an account's automations do.",
  carries: {
    'run:started': { summary: 'A run has begun.', data: Run },
    'run:step': { summary: 'A step of a run has ended.', data: Run },
    'run:finished': { summary: 'A run has ended.', data: Run },
    'run:dropped': {
      summary: 'Runs were dropped since the last such message, by a bound of the account or a full queue.',
      data: z.object({ type: z.string(), count: z.int() }),
    },
    '*': { summary: 'An update of the automation engine.', data: z.looseObject({}) },
  },
  gate: permission('automations:read'),
  flag: 'feature:automation',
  writable: 'automations:execute',
  message_type: 'automation',
});
