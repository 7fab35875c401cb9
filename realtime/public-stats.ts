import { z } from 'zod';
import { PLATFORMS } from '../domain/vendors';
import { publicWhen } from '../kernel/channel';
import { channel } from './runtime/family';

export const publicStats = channel({
  pattern: 'public-stats:<platform>:<broadcast_id>',
  summary: 'Numbers of one broadcast, for everybody.',
  carries: { '*': { summary: 'The numbers now; the first comes by itself.', data: z.looseObject({}) } },
  ids: { platform: new RegExp(PLATFORMS.join('|')), broadcast_id: /[A-Za-z0-9._~-]{1,100}/ },
  gate: publicWhen('system:public_stats'),
  flag: 'system:public_stats',
});
