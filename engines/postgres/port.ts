/** One row as the driver returns it. */
export type Row = Record<string, any>;

/** Something SQL can be sent to: the pool, or one transaction's connection. */
export interface Queryable {
  /** `name` makes it a server-side prepared statement of that name (same name, same text). */
  query<R extends Row = Row>(text: string, values?: readonly unknown[], name?: string): Promise<R[]>;
}

/** The relational database behind read models and embedded engines. */
export interface Database extends Queryable {
  /** Runs `work` in one transaction on one connection; a throw rolls it back. */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>;
}
