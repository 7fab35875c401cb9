import { accountScoped } from '../kernel/channel';
import { channel } from './runtime/family';

const PREFIX = 'presence:';

/**
 * Who is on another channel: whoever subscribes is present, is sent `presence:bootstrap` with everybody on all nodes,
 * and then `presence:join` and `presence:leave`. A channel that belongs to no account has no presence.
 */
export const presence = channel({
  pattern: `${PREFIX}<resource_channel>`,
  ids: { resource_channel: /[a-z-]{1,40}:[A-Za-z0-9:._~-]{1,140}/ },
  owner: async (wrapped, _caller, { ownerOf }) => (wrapped.startsWith(PREFIX) ? null : ownerOf(wrapped)),
  gate: accountScoped,
  flag: null,
  bootstrap: (subscriber, { rooms }) => rooms?.enter(subscriber),
});
