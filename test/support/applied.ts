import type { Database, Queryable } from '../../engines/postgres/port';

/** The rows of tables, in one order. */
export async function rowsOf(tx: Queryable, tables: readonly string[]): Promise<unknown[]> {
  const rows = [];
  for (const table of tables) rows.push(await tx.query(`select to_jsonb(t) as row from ${table} t order by 1`));
  return rows;
}

class Undo extends Error {}

/** Runs `work` in a transaction that is undone. */
export async function undone<T>(db: Database, work: (tx: Queryable) => Promise<T>): Promise<T> {
  let made: T;
  await db
    .transaction(async (tx) => {
      made = await work(tx);
      throw new Undo();
    })
    .catch((error: unknown) => {
      if (!(error instanceof Undo)) throw error;
    });
  return made!;
}

/** A list in pieces of so many. */
export const inPieces = <T>(list: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, n) => list.slice(n * size, (n + 1) * size));
