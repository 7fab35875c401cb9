import { z } from 'zod';
import { accountScoped } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

const PREFIX = 'presence:';

const Connection = z
  .looseObject({
    connection_id: z.string(),
    display_name: z.string().nullable(),
    avatar: z.string().nullable(),
    user_id: z.string().nullable(),
    account_id: z.uuid().nullable(),
    acts_for: z.uuid().optional().describe('Member that the popout token of `user_id` acts for, where that is another'),
  })
  .meta({ id: 'PresentConnection' });

/**
 * Presence on another channel: a subscriber is present, receives `presence:bootstrap` with the members on all nodes,
 * and then `presence:join` and `presence:leave`, or the whole list again where many joined or left. A channel without
 * an account has no presence.
 */
export const presence = channel({
  pattern: `${PREFIX}<resource_channel>`,
  summary: 'Who is on another channel that belongs to an account; whoever subscribes is present.',
  carries: {
    'presence:bootstrap': {
      summary:
        'Who is there: the 500 that came first, and how many there are. Sent to a new subscriber, and to all in place ' +
        'of more than 250, or of very long ones, that came or went at once.',
      data: z.object({ connections: z.array(Connection), total: z.int() }),
    },
    'presence:join': { summary: 'Somebody has come.', data: Connection },
    'presence:leave': { summary: 'Somebody has gone.', data: Connection },
  },
  ids: { resource_channel: /[a-z-]{1,40}:[A-Za-z0-9:._~-]{1,140}/ },
  owner: async (wrapped, _caller, { ownerOf }) => (wrapped.startsWith(PREFIX) ? null : ownerOf(wrapped)),
  gate: accountScoped,
  flag: null,
  bootstrap: (subscriber, { rooms }) => rooms?.enter(subscriber),
});
