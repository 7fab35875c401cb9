import { type Database, type Queryable, type Statement, textArray } from '../../engines/postgres/port';
import type { ChannelMessage } from '../../kernel/projection';

/** The wake-up that realtime nodes wait for; sent after the commit, never inside it. */
export const OUTBOX_WAKEUP = 'outbox';

/**
 * Stores channel messages by {@link outboxStatement} in the caller's transaction; returns the newest id, null without
 * messages.
 */
export async function writeOutbox(tx: Queryable, messages: readonly ChannelMessage[]): Promise<number | null> {
  const statement = outboxStatement(messages);
  if (!statement) return null;
  const [row] = await tx.query(statement.text, statement.values, statement.name);
  return row!.newest;
}

/**
 * What stores channel messages; null without any. It must be the transaction's last statement: from here to the commit
 * one lock orders all projectors, so that outbox ids are in commit order and every channel's `seq` is dense. Design §7.
 * `trace` is the traceparent of the batch: null when its messages keep their own, absent when tracing is off and none
 * is stored.
 */
export function outboxStatement(messages: readonly ChannelMessage[], trace?: string | null): Statement | null {
  if (messages.length === 0) return null;
  const channels: string[] = [];
  const types: string[] = [];
  const data: string[] = [];
  for (const message of messages) {
    channels.push(message.channel);
    types.push(message.event_type);
    data.push(message.data);
  }
  const lists = [textArray(channels), textArray(types), textArray(data)];
  if (trace === undefined) {
    return { text: 'select outbox_write($1, $2, $3) as newest', values: lists, name: 'outbox_write' };
  }
  const traces = textArray(messages.map((message) => trace ?? message.trace ?? null));
  return {
    text: 'select outbox_write($1, $2, $3, $4) as newest',
    values: [...lists, traces],
    name: 'outbox_write_traced',
  };
}

/** Rows deleted by one statement while trimming: keeps its locks and its WAL small. */
const TRIM_CHUNK = 5000;

/**
 * Deletes messages older than `keep_ms`, oldest first, in short transactions; returns how many. Ids are in the order of
 * time, so that it looks at the eldest rows alone, by the primary key, and stops at the first young one. Channel heads
 * stay: a channel's sequence never starts again.
 */
export async function trimOutbox(db: Database, keep_ms: number): Promise<number> {
  let trimmed = 0;
  for (;;) {
    // The newest row stays, so that a reader can always tell "trimmed" from "never written".
    const rows = await db.query(
      `with eldest as materialized (
         select id, created_at < clock_timestamp() - $1 * interval '1 millisecond' as old from outbox order by id limit $2
       ), last as (
         select least(coalesce((select min(id) from eldest where not old), max(id) + 1), (select max(id) from outbox)) as id
         from eldest
       )
       delete from outbox where id < (select id from last) and id >= (select min(id) from eldest) returning 1 as one`,
      [keep_ms, TRIM_CHUNK],
    );
    trimmed += rows.length;
    if (rows.length < TRIM_CHUNK) return trimmed;
  }
}
