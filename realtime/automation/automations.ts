import { z } from 'zod';
import { permission } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

export const automations = channel({
  pattern: 'automations:<account_id>',
  summary: "What an account's automations do.",
  carries: { '*': { summary: 'An update of the automation engine.', data: z.looseObject({}) } },
  gate: permission('automations:read'),
  flag: 'feature:automation',
  writable: 'automations:execute',
  message_type: 'automation',
});
