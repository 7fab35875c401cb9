import type { HeldLock, LockKey } from '../locks/port';

export { BinaryRows } from './binary-rows';

/** Row as the driver returns it. */
export type Row = Record<string, any>;

export interface Statement {
  text: string;
  values?: readonly unknown[];
  /** Makes it a server-side prepared statement of that name (same name, same text). */
  name?: string;
}

/** Target of SQL: the pool, or the connection of a transaction. */
export interface Queryable {
  /**
   * `name` makes it a server-side prepared statement of that name (same name, same text). In a transaction
   * `copy … from stdin (format binary)` takes its data, made by {@link BinaryRows}, as the one value.
   */
  query<R extends Row = Row>(text: string, values?: readonly unknown[], name?: string): Promise<R[]>;
}

/** The relational database behind read models and embedded engines. */
export interface Database extends Queryable {
  /**
   * Runs `work` in one transaction on one connection; a throw rolls it back. `last` makes the last statement from the
   * result of `work`: it may be sent together with the commit, which becomes a rollback when the statement fails.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>, last?: (result: T) => Statement | null): Promise<T>;
  /**
   * Runs `work` while a connection of its own holds an advisory lock. The connection is in no transaction, so that no
   * timeout of idle transactions ends it.
   * @throws LockTaken when another session holds the lock
   */
  hold<T>(lock: LockKey, work: (held: HeldLock) => Promise<T>): Promise<T>;
}

const INT4_OID = 23;
const TEXT_OID = 25;
const JSON_OID = 114;
/**
 * Size of the head: dimensions, null flag and type of the elements; with elements also their number and lower bound.
 */
const EMPTY_BYTES = 12;
const HEAD_BYTES = 20;

/**
 * A `text[]` parameter in PostgreSQL's binary form. An ordinary array parameter becomes a literal in which every quote
 * and backslash is escaped, by one pass here and another in the server: for thousands of JSON texts that costs more
 * than storing them. The statement must take it as `text[]` and cast the elements itself.
 */
export const textArray = (values: readonly (string | null)[]): Buffer => arrayOf(TEXT_OID, values);

/** A `json[]` parameter in the same form: the server validates each text and stores it unchanged. */
export const jsonArray = (values: readonly (string | null)[]): Buffer => arrayOf(JSON_OID, values);

/** An `integer[]` in the same form: the driver quotes each number of an ordinary one. */
export function intArray(values: readonly number[]): Buffer {
  const out = arrayHead(INT4_OID, values.length, false, 8 * values.length);
  let at = HEAD_BYTES;
  for (const value of values) {
    at = out.writeInt32BE(4, at);
    at = out.writeInt32BE(value, at);
  }
  return out;
}

function arrayOf(oid: number, values: readonly (string | null)[]): Buffer {
  let bytes = 4 * values.length;
  const lengths = values.map((value) => {
    if (value === null) return -1;
    const length = Buffer.byteLength(value);
    bytes += length;
    return length;
  });
  const out = arrayHead(oid, values.length, lengths.includes(-1), bytes);
  let at = HEAD_BYTES;
  for (let i = 0; i < values.length; i += 1) {
    const length = lengths[i]!;
    at = out.writeInt32BE(length, at);
    if (length > 0) at += out.write(values[i]!, at, length);
  }
  return out;
}

/** An array with room for its elements, `bytes` in all. */
function arrayHead(oid: number, count: number, with_nulls: boolean, bytes: number): Buffer {
  const out = Buffer.allocUnsafe(count === 0 ? EMPTY_BYTES : HEAD_BYTES + bytes);
  out.writeInt32BE(count === 0 ? 0 : 1, 0);
  out.writeInt32BE(with_nulls ? 1 : 0, 4);
  out.writeInt32BE(oid, 8);
  if (count === 0) return out;
  out.writeInt32BE(count, 12);
  out.writeInt32BE(1, 16);
  return out;
}
