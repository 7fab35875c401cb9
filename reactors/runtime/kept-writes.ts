import type { Queryable } from '../../engines/postgres/port';

/** A write that belongs to the transaction that moves a reactor's checkpoint. */
export interface Write {
  run(tx: Queryable): Promise<unknown>;
  /** SQL of a kept statement; undefined for an enqueued job. */
  text?: string;
  /** Set when a job is to run after the commit. */
  wakes?: boolean;
}

const WRITTEN_TABLE = /^\s*(?:insert\s+into|delete\s+from|update)\s+(\w+)/i;

/** True when the query may read a table that one of the writes changes; a write of unknown form changes any. */
export function readsWritten(query: string, writes: readonly Write[]): boolean {
  return writes.some(({ text }) => {
    if (text === undefined) return false;
    const table = WRITTEN_TABLE.exec(text)?.[1];
    return table === undefined || new RegExp(`\\b${table}\\b`, 'i').test(query);
  });
}
