import type { Queryable, Row } from '../engines/postgres/port';
import type { Rows } from './pages';

/** Parts of a statement; parameters are `$1` and on, in `from` alone. */
export interface PageQuery {
  select: string;
  /** Tables and conditions: `notes where account_id = $1`. */
  from: string;
  /** Must tell rows apart, or pages overlap. */
  order: string;
  values: readonly unknown[];
}

/** The rows of one page and how many there are in all, from one statement and so from one snapshot. */
export async function rowsOf<T extends object = Row>(
  db: Queryable,
  { limit, offset }: Rows,
  { select, from, order, values }: PageQuery,
): Promise<{ items: T[]; total: number }> {
  const [limited, skipped] = [values.length + 1, values.length + 2];
  const found = await db.query(
    `select counted.total, page.* from (select count(*)::int as total from ${from}) counted
     left join (
       select ${select}, row_number() over (order by ${order}) as row_place from ${from}
       order by ${order} limit $${limited} offset $${skipped}
     ) page on true order by row_place`,
    [...values, limit, offset],
  );
  const items = found.flatMap(({ total: _total, row_place, ...row }) => (row_place === null ? [] : [row as T]));
  return { items, total: found[0]!.total as number };
}

/** One row more than the page holds says whether there is a next one; `placeOf` is a row's key. */
export function cut<T, Key>(
  rows: readonly T[],
  limit: number,
  placeOf: (row: T) => Key,
): { items: T[]; next: Key | null } {
  const items = rows.slice(0, limit);
  return { items, next: rows.length > limit ? placeOf(items[items.length - 1]!) : null };
}
