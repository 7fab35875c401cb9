import { accountScoped } from '../kernel/channel';
import { channel } from './runtime/family';

/** Sounds to play now; any credential of the account, widgets and overlays included, stays in its own account. */
export const sounds = channel({
  pattern: 'sounds:<account_id>',
  gate: accountScoped,
  flag: 'feature:sounds',
});
