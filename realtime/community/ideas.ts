import { z } from 'zod';
import { publicWhen } from '../../kernel/channel';
import { UUID } from '../../lib/hash/uuid';
import { channel } from '../runtime/channel/family';

const carries = { '*': { summary: 'What has changed.', data: z.looseObject({}) } };
const open = { carries, gate: publicWhen('system:ideas_hub_public'), flag: 'system:ideas_hub' };

export const board = channel({ pattern: 'ideas:list', summary: 'Changes of the board of ideas as a whole.', ...open });

export const idea = channel({
  pattern: 'ideas:<idea_id>',
  summary: 'Changes of one idea.',
  ids: { idea_id: UUID },
  ...open,
});
