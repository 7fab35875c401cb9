import { boundToken } from '../kernel/channel';
import { channel, ofBoundToken } from './runtime/family';

/** What one overlay shows; only its own token, or a shared link's, listens. */
export const overlay = channel({
  pattern: 'overlay:<key>',
  owner: ofBoundToken('overlay'),
  gate: boundToken('overlay', 'shared_overlay'),
  flag: 'feature:overlays',
});
