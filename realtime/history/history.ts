import { z } from 'zod';
import { SessionSummary } from '../../domain/history/session-summary';
import { permission } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

const session = z.object({ session_id: z.uuid(), ...SessionSummary.shape });

export const history = channel({
  pattern: 'history:<account_id>',
  summary: 'Streams of an account that begin, end and change.',
  carries: {
    'history:session_started': { summary: 'A stream has begun.', data: session },
    'history:session_updated': { summary: 'A stream has changed or ended; at most every 10 s.', data: session },
  },
  gate: permission('history:read'),
  flag: 'feature:stream_history',
});
