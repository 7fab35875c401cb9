import type { Queryable } from '../../engines/postgres/port';
import { Outbox, type Places, type TailPage } from '../../realtime/runtime/delivery/outbox';

/** Every name is heard. */
export const ALL_HEARD = Buffer.alloc(1, 0xff);

/** Before all that was ever written. */
export const BEGINNING: Places = Array<number>(65).fill(0);

/** A page of at most about so many messages, as a node reads it that hears everything. */
export const readTail = (db: Queryable, after: Places, messages: number): Promise<TailPage> =>
  new Outbox(db, 60_000).tail(after, ALL_HEARD, { messages, bytes: Number.MAX_SAFE_INTEGER });

/** All messages, in the order of their ids. */
export const allMessages = async (db: Queryable) => (await readTail(db, BEGINNING, 1_000_000)).heard;
