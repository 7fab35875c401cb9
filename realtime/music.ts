import { z } from 'zod';
import type { Vendor } from '../domain/vendors';
import { permission } from '../kernel/channel';
import { channel } from './runtime/family';

const MUSIC = 'spotify' satisfies Vendor;

export const music = channel({
  pattern: `${MUSIC}:<account_id>`,
  summary: 'What an account is listening to.',
  carries: { '*': { summary: 'The state of the player.', data: z.looseObject({}) } },
  gate: permission(`${MUSIC}:read`),
  flag: 'feature:music',
  message_type: `${MUSIC}:now-playing`,
});
