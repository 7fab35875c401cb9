import type { Vendor } from '../domain/vendors';
import { permission } from '../kernel/channel';
import { channel } from './runtime/family';

const MUSIC = 'spotify' satisfies Vendor;

/** What an account is listening to. */
export const music = channel({
  pattern: `${MUSIC}:<account_id>`,
  gate: permission(`${MUSIC}:read`),
  flag: 'feature:music',
  message_type: `${MUSIC}:now-playing`,
});
