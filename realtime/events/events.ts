import { EventPush } from '../../domain/events/events';
import { permission } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

export const events = channel({
  pattern: 'events:<account_id>',
  summary: "What happens on an account's channels, as it happens.",
  carries: { '*': { summary: 'An event; `event_type` is its type, such as `kick:follower`.', data: EventPush } },
  gate: permission('events:read'),
  flag: 'feature:events',
  writable: 'events:create',
});
