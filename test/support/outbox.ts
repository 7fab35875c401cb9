import type { Queryable } from '../../engines/postgres/port';
import type { StoredMessage } from '../../realtime/runtime/envelopes';
import { Outbox } from '../../realtime/runtime/outbox';

/** Messages after `after`, oldest first, as a node reads them. */
export const tailOutbox = (db: Queryable, after: number, messages: number): Promise<StoredMessage[]> =>
  new Outbox(db, 60_000).tail(after, { messages, bytes: Number.MAX_SAFE_INTEGER });
