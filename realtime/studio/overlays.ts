import { z } from 'zod';
import { boundToken } from '../../kernel/channel';
import { channel, ofBoundToken } from '../runtime/channel/family';

export const overlay = channel({
  pattern: 'overlay:<key>',
  summary: "What one overlay shows; only its own token, or a shared link's, listens.",
  carries: { 'overlay:update': { summary: 'It shows something else now.', data: z.looseObject({}) } },
  owner: ofBoundToken('overlay'),
  gate: boundToken('overlay', 'shared_overlay'),
  flag: 'feature:overlays',
});
