import { boundToken } from '../kernel/channel';
import { channel, ofBoundToken } from './runtime/family';

/** What one widget shows; only its own token listens. */
export const widget = channel({
  pattern: 'widget:<widget_instance_id>',
  owner: ofBoundToken('widget'),
  gate: boundToken('widget'),
  flag: 'feature:widgets',
});
