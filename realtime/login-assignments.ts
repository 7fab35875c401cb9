import { publicAlways } from '../kernel/channel';
import { channel } from './runtime/family';

/** Which provider an account's login was assigned to; carries nothing else. */
export const loginAssignments = channel({
  pattern: 'login-assignments:<id>',
  gate: publicAlways,
  flag: null,
});
