import { z } from 'zod';
import { accountAndPages } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

const target = z
  .object({ type: z.enum(['widget', 'overlay']), id: z.uuid() })
  .nullable()
  .describe('Null: every page');

export const sounds = channel({
  pattern: 'sounds:<account_id>',
  summary: 'Sounds to play now; any credential of the account listens, those of widgets and overlays included.',
  carries: {
    'sound:play': {
      summary: 'Play it, on every page or on one; it is not stored.',
      data: z.object({
        sound_id: z.uuid(),
        url: z.string().describe('Path of the audio, which needs no credential for an hour at least'),
        volume: z.number().describe('0 to 1'),
        target,
      }),
    },
    'sound:stop': { summary: 'Stop it; it is not stored.', data: z.object({ sound_id: z.uuid(), target }) },
    'sound:list:updated': {
      summary: 'A sound was created, updated or deleted.',
      data: z.object({ action: z.enum(['created', 'updated', 'deleted']), sound_id: z.uuid() }),
    },
  },
  gate: accountAndPages,
  flag: 'feature:sounds',
});
