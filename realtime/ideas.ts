import { publicWhen } from '../kernel/channel';
import { UUID } from '../kernel/uuid';
import { channel } from './runtime/family';

const open = { gate: publicWhen('system:ideas_hub_public'), flag: 'system:ideas_hub' };

/** Changes of the board as a whole. */
export const board = channel({ pattern: 'ideas:list', ...open });

/** Changes of one idea. */
export const idea = channel({ pattern: 'ideas:<idea_id>', ids: { idea_id: UUID }, ...open });
