import { z } from 'zod';
import type { Json } from '../../lib/json/json';
import { Holders } from './handover/readings';
import { Known } from './looks/known';

/** State of a session for the next one, of this process or another. */
const SessionState = Holders.extend({
  session_id: z.string(),
  known: Known,
  /** Number of the conduit's last handled gap; absent where no conduit received the channel. */
  gaps: z.number().optional(),
});
export type SessionState = z.output<typeof SessionState>;

/** Null for a state that this release cannot read. */
export const readState = (state: Json): SessionState | null => SessionState.safeParse(state).data ?? null;
