import { boundToken } from '../kernel/channel';
import { channel } from './runtime/family';

/** What one overlay shows; only its own token, or a shared link's, listens. */
export const overlay = channel({
  pattern: 'overlay:<key>',
  gate: boundToken('overlay', 'shared_overlay'),
  flag: 'feature:overlays',
});
