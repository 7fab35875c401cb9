import { z } from 'zod';
import { PLATFORMS } from '../../domain/common/vendors';
import { publicWhen } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

export const publicStats = channel({
  pattern: 'public-stats:<platform>:<broadcast_id>',
  summary: 'Numbers of one broadcast, for everybody.',
  carries: {
    'public-stats:bootstrap': {
      summary: 'The numbers now, sent to a new subscriber alone; never of a channel that does not show them.',
      data: z.looseObject({}),
    },
    '*': { summary: 'The numbers have changed.', data: z.looseObject({}) },
  },
  ids: { platform: new RegExp(PLATFORMS.join('|')), broadcast_id: /[A-Za-z0-9._~-]{1,100}/ },
  gate: publicWhen('system:public_stats'),
  flag: 'system:public_stats',
  async bootstrap({ channel_id, send }, { streamSnapshot }) {
    const colon = channel_id.indexOf(':');
    const snapshot = await streamSnapshot(channel_id.slice(0, colon), channel_id.slice(colon + 1));
    if (snapshot !== null) send('public-stats:bootstrap', JSON.stringify(snapshot));
  },
});
