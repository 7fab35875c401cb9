import { permission } from '../kernel/channel';
import { channel } from './runtime/family';

/** What an account's automations do. */
export const automations = channel({
  pattern: 'automations:<account_id>',
  gate: permission('automations:read'),
  flag: 'feature:automation',
  writable: 'automations:execute',
  message_type: 'automation',
});
