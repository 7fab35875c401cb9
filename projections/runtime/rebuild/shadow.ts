import type { Queryable } from '../../../engines/postgres/port';
import { ident } from '../../../kernel/sql';

/** Schema in which the projection's new tables are built. */
export const shadowOf = (projection: string): string => `rebuild_${projection.replaceAll('-', '_')}`;

interface TableRow {
  oid: number;
  name: string;
  kind: string;
  parent: string | null;
  bound: string | null;
  part_key: string | null;
  options: string[] | null;
}

/**
 * Returns the tables and all their partitions in `schema`, parents first. Children of other kinds belong to an
 * extension (chunks of a hypertable).
 */
async function tableTree(tx: Queryable, schema: string, tables: readonly string[]): Promise<TableRow[]> {
  return tx.query<TableRow>(
    `with recursive tree as (
       select c.oid, c.relname, c.relkind, c.reloptions, null::name as parent, 0 as depth
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = $1 and c.relname = any($2) and c.relkind in ('r', 'p')
       union all
       select c.oid, c.relname, c.relkind, c.reloptions, tree.relname, depth + 1
       from tree join pg_inherits i on i.inhparent = tree.oid join pg_class c on c.oid = i.inhrelid and c.relispartition
     )
     select oid::int8 as oid, relname as name, relkind as kind, parent, reloptions as options,
            (select pg_get_expr(c.relpartbound, c.oid) from pg_class c where c.oid = tree.oid) as bound,
            case when relkind = 'p' then pg_get_partkeydef(oid) end as part_key
     from tree order by depth, relname`,
    [schema, tables],
  );
}

/** Refuses tables with parts that a clone cannot copy, before any work is done. */
async function refuseUncloneable(tx: Queryable, schema: string, tables: readonly string[]): Promise<void> {
  const found = await tx.query(
    `with t as (select c.oid, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
                where n.nspname = $1 and c.relname = any($2) and c.relkind in ('r', 'p'))
     select t.relname || ' has the foreign key ' || k.conname as why from t join pg_constraint k on k.conrelid = t.oid
       and k.contype = 'f'
     union all
     select k.conname || ' refers to ' || t.relname from t join pg_constraint k on k.confrelid = t.oid
       and k.contype = 'f'
     union all
     select t.relname || ' has the trigger ' || g.tgname from t join pg_trigger g on g.tgrelid = t.oid
       and not g.tgisinternal
       -- An extension that watches the table will watch the copy.
       and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = g.tgfoid
         and d.deptype = 'e')
     union all
     select t.relname || ' owns the serial sequence of column ' || a.attname
     from t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and a.attidentity = ''
     where pg_get_serial_sequence(format('%I.%I', $1::text, t.relname), a.attname) is not null
     union all
     select 'view ' || v.oid::regclass || ' reads ' || t.relname
     from t join pg_depend d on d.refobjid = t.oid and d.classid = 'pg_rewrite'::regclass
       join pg_rewrite r on r.oid = d.objid join pg_class v on v.oid = r.ev_class and v.oid <> t.oid
     union all
     select 'there is no table ' || name from unnest($2::text[]) as name
       where not exists (select 1 from t where relname = name)`,
    [schema, tables],
  );
  if (found.length > 0) throw new Error(`cannot rebuild: ${found.map((row) => row.why).join('; ')}`);
}

/**
 * Creates `tables` with the same names and structure in the schema `shadow`: columns, defaults, identity, generated
 * columns, checks, storage, named indexes and constraints, storage parameters, partitioning and partitions of any
 * depth, and the settings of extensions (migrations/0018-rebuilt-tables.ts). Indexes exist before the load, except
 * those named in `late` ({@link cloneLateIndexes}). Existing tables stay unchanged, so a second call adds partitions
 * made meanwhile.
 * @throws Error when a table has foreign keys, triggers, serial columns or views on it
 */
export async function cloneTables(
  tx: Queryable,
  tables: readonly string[],
  shadow: string,
  late: readonly string[] = [],
  live = 'public',
): Promise<void> {
  await refuseUncloneable(tx, live, tables);
  const existing = new Set((await tableTree(tx, shadow, tables)).map((table) => table.name));
  for (const table of await tableTree(tx, live, tables)) {
    if (existing.has(table.name)) continue;
    const target = `${ident(shadow)}.${ident(table.name)}`;
    const partitioned = table.part_key === null ? '' : ` partition by ${table.part_key}`;
    const options = table.options ? ` with (${table.options.join(', ')})` : '';
    if (table.parent !== null) {
      const parent = `${ident(shadow)}.${ident(table.parent)}`;
      await tx.query(`create table ${target} partition of ${parent} ${table.bound}${partitioned}${options}`);
    } else {
      const source = `${ident(live)}.${ident(table.name)}`;
      await tx.query(`create table ${target} (like ${source} including all excluding indexes)${partitioned}${options}`);
      await tx.query('select public.shape_rebuilt_table($1::regclass, $2::regclass)', [source, target]);
    }
    await cloneIndexes(tx, table, shadow, (name) => !late.includes(name));
  }
}

/**
 * Creates the indexes that {@link cloneTables} left out, on the loaded shadow tables and all their partitions; existing
 * indexes stay unchanged.
 */
export async function cloneLateIndexes(
  tx: Queryable,
  tables: readonly string[],
  shadow: string,
  late: readonly string[],
  live = 'public',
): Promise<void> {
  for (const table of await tableTree(tx, live, tables)) {
    await cloneIndexes(tx, table, shadow, (name) => late.includes(name));
  }
}

/**
 * Makes statistics for the planner, of the tables that hold rows: their partitioned parents have no statistics in the
 * live schema either.
 */
export async function analyzeTables(db: Queryable, tables: readonly string[], shadow: string): Promise<void> {
  const filled = (await tableTree(db, shadow, tables)).filter(({ kind }) => kind === 'r');
  if (filled.length === 0) return;
  await db.query(`analyze ${filled.map(({ name }) => `${ident(shadow)}.${ident(name)}`).join(', ')}`);
}

/** Creates constraints and indexes under their own names; a partition inherits those of its parent. */
async function cloneIndexes(
  tx: Queryable,
  table: TableRow,
  shadow: string,
  wanted: (name: string) => boolean,
): Promise<void> {
  const target = `${ident(shadow)}.${ident(table.name)}`;
  const indexes = await tx.query(
    `select c.relname as name, k.conname, pg_get_constraintdef(k.oid) as constraint_def,
       pg_get_indexdef(i.indexrelid) as index_def
     from pg_index i join pg_class c on c.oid = i.indexrelid left join pg_constraint k on k.conindid = i.indexrelid
       and k.contype in ('p', 'u', 'x') and k.conrelid = i.indrelid
     where i.indrelid = $1 and i.indisvalid
       and not exists (select 1 from pg_inherits h where h.inhrelid = i.indexrelid)
       and not exists (select 1 from pg_class made where made.relname = c.relname
         and made.relnamespace = to_regnamespace($2) and made.relkind in ('i', 'I'))
     order by k.conname nulls last, i.indexrelid`,
    [table.oid, ident(shadow)],
  );
  for (const index of indexes) {
    if (!wanted(index.name as string)) continue;
    if (index.conname !== null) {
      await tx.query(`alter table ${target} add constraint ${ident(index.conname)} ${index.constraint_def}`);
    } else {
      // pg_get_indexdef always returns "ON [ONLY] schema.table USING"; the first match is the table's.
      await tx.query((index.index_def as string).replace(/ ON (ONLY )?.+? USING /, ` ON ${target} USING `));
    }
  }
}

/**
 * Locks the live tables for the transaction alone, all of them within `within_ms`. A reader of one table may wait for
 * another that is locked already: after a second of that PostgreSQL would end a request.
 * @throws an error of the kind `conflict` when readers held any of them for longer
 */
export async function lockTables(
  tx: Queryable,
  tables: readonly string[],
  within_ms: number,
  live = 'public',
): Promise<void> {
  const ends = performance.now() + within_ms;
  for (const table of tables) {
    await setLockTimeout(tx, ends - performance.now());
    await tx.query(`lock table ${ident(live)}.${ident(table)} in access exclusive mode`);
  }
  await setLockTimeout(tx, within_ms);
}

/** Sets the lock timeout for the rest of the transaction. */
export const setLockTimeout = (tx: Queryable, ms: number) =>
  // 0 would disable the timeout.
  tx.query(`set local lock_timeout = ${Math.max(1, Math.round(ms))}`);

/**
 * Drops the live tables, which {@link lockTables} has locked, and moves the shadow tables with their partitions there.
 */
export async function swapTables(
  tx: Queryable,
  tables: readonly string[],
  shadow: string,
  live = 'public',
): Promise<void> {
  const moving = await tableTree(tx, shadow, tables);
  for (const table of tables) await tx.query(`drop table ${ident(live)}.${ident(table)}`);
  for (const table of moving) {
    await tx.query(`alter table ${ident(shadow)}.${ident(table.name)} set schema ${ident(live)}`);
  }
}
