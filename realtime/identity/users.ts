import { z } from 'zod';
import { ownUser } from '../../kernel/channel';
import { UUID } from '../../lib/hash/uuid';
import { channel } from '../runtime/channel/family';

/** An addition to the channels of spec doc3 §4.1. */
export const user = channel({
  pattern: 'user:<user_id>',
  summary: 'What concerns one user whatever the account, such as their notifications; they alone listen.',
  carries: { '*': { summary: 'News for the user.', data: z.looseObject({}) } },
  ids: { user_id: UUID },
  gate: ownUser,
  flag: null,
});
