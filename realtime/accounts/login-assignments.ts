import { z } from 'zod';
import { publicAlways } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

export const loginAssignments = channel({
  pattern: 'login-assignments:<account_id>',
  summary: "Which provider an account's login was assigned to; nothing else.",
  carries: { '*': { summary: 'The assignment has changed.', data: z.object({ provider: z.string() }) } },
  gate: publicAlways,
  flag: null,
});
