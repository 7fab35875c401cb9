import { permission } from '../kernel/channel';
import { channel } from './runtime/family';

/** Streams of an account that begin, end and change. */
export const history = channel({
  pattern: 'history:<account_id>',
  gate: permission('history:read'),
  flag: 'feature:stream_history',
});
