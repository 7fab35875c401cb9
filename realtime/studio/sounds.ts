import { z } from 'zod';
import { accountAndPages } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

export const sounds = channel({
  pattern: 'sounds:<account_id>',
  summary: 'Sounds to play now; any credential of the account listens, those of widgets and overlays included.',
  carries: {
    'sound:play': { summary: 'Play it.', data: z.looseObject({}) },
    'sound:stop': { summary: 'Stop it.', data: z.looseObject({}) },
    'sound:list:updated': {
      summary: 'A sound was created, updated or deleted.',
      data: z.object({ action: z.enum(['created', 'updated', 'deleted']), sound_id: z.uuid() }),
    },
  },
  gate: accountAndPages,
  flag: 'feature:sounds',
});
