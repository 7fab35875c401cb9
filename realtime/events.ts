import { permission } from '../kernel/channel';
import { channel } from './runtime/family';

/** What happens on an account's channels, as it happens. */
export const events = channel({
  pattern: 'events:<account_id>',
  gate: permission('events:read'),
  flag: 'feature:events',
  writable: 'events:create',
});
