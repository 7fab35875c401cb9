import { PROJECTIONS } from '../../../bin/areas';
import type { Lumio } from './lumio';

/** Tables of all read models that are declared, each once. */
export const TABLES: readonly string[] = [...new Set(PROJECTIONS.flatMap(({ tables }) => tables))].sort();

/**
 * By table of every declared read model: the number of its rows, and one hash over them in whatever order. An identity
 * column counts by its rank, because a transaction that was undone leaves a gap in its numbers.
 */
export async function hashesOf(on: Pick<Lumio, 'query'>): Promise<Map<string, string>> {
  const identities = await on.query(
    `select table_name, column_name from information_schema.columns
     where table_schema = 'public' and is_identity = 'YES'`,
  );
  const hashes = new Map<string, string>();
  for (const table of TABLES) {
    const ranks = identities
      .filter(({ table_name }) => table_name === table)
      .map(({ column_name }) => ` || jsonb_build_object('${column_name}', rank() over (order by t.${column_name}))`);
    const [row] = await on.query(
      `select count(*) || '/' || coalesce(md5(string_agg(hash, '' order by hash)), '') as hash
       from (select md5((to_jsonb(t)${ranks.join('')})::text) as hash from ${table} t) as rows`,
    );
    hashes.set(table, row.hash);
  }
  return hashes;
}

/** Tables whose rows differ, a sentence each. */
export const compareHashes = (live: ReadonlyMap<string, string>, rebuilt: ReadonlyMap<string, string>): string[] =>
  [...live].flatMap(([table, hash]) =>
    rebuilt.get(table) === hash ? [] : [`${table}: live ${hash}, rebuilt ${rebuilt.get(table)}`],
  );
