import { ident } from '../../kernel/sql';
import { JOB_SCHEMA } from '../jobs/names';
import type { Queryable } from '../postgres/port';

/** A partition of a table, of any depth; parents come before their children. */
export interface PartitionShape {
  name: string;
  parent: string;
  /** `FOR VALUES …` or `DEFAULT`. */
  bound: string;
  /** Its own partition key, or null. */
  part_key: string | null;
}

/** A table that is not a partition of another. */
export interface TableShape {
  /** Name, with the schema before a dot unless that is `public`. */
  name: string;
  /** Columns except generated ones, which the database computes again. */
  columns: string[];
  partitions: PartitionShape[];
  /** Tables that its foreign keys refer to. */
  refers_to: string[];
  /** Bytes on disk, without indexes; for progress only. */
  size_bytes: number;
}

export interface SequenceValue {
  /** Name, in the form of a table's. */
  name: string;
  /** Null when it was never used. */
  last_value: number | null;
}

/** SQL name of a table or sequence. Names of our own have no dot. */
export const relation = (name: string): string => {
  const dot = name.indexOf('.');
  return dot < 0 ? `public.${ident(name)}` : `${ident(name.slice(0, dot))}.${ident(name.slice(dot + 1))}`;
};

/** Schemas in a backup: our own and the job library's. */
const SCHEMAS = `('public', '${JOB_SCHEMA}')`;
const named = (schema: string, name: string) =>
  `case when ${schema} = 'public' then ${name}::text else ${schema} || '.' || ${name} end`;

/** Every table, in the order of foreign keys: referenced tables first. */
export async function readTables(db: Queryable): Promise<TableShape[]> {
  const tables = await db.query<Omit<TableShape, 'partitions'> & { oid: number }>(`
    select c.oid::int8 as oid, ${named('n.nspname', 'c.relname')} as name,
      coalesce((select array_agg(a.attname::text order by a.attnum) from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''), '{}') as columns,
      coalesce((select array_agg(distinct f.relname::text) from pg_constraint k join pg_class f on f.oid = k.confrelid
        where k.conrelid = c.oid and k.contype = 'f' and k.confrelid <> c.oid
          and not f.relispartition), '{}') as refers_to,
      (select coalesce(sum(pg_table_size(t.relid)), 0)::int8 from pg_partition_tree(c.oid) t where t.isleaf)
        + case when c.relkind = 'r' then pg_table_size(c.oid) else 0 end as size_bytes
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ${SCHEMAS} and c.relkind in ('r', 'p') and not c.relispartition
    order by n.nspname = 'public' desc, c.relname`);
  const partitions = await db.query<PartitionShape & { root: number }>(`
    with recursive tree as (
      select c.oid as root, c.oid, c.relname, null::name as parent, 0 as depth
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'public' and c.relkind = 'p' and not c.relispartition
      union all
      select tree.root, c.oid, c.relname, tree.relname, depth + 1
      from tree join pg_inherits i on i.inhparent = tree.oid join pg_class c on c.oid = i.inhrelid
    )
    select tree.root::int8 as root, tree.relname as name, tree.parent, pg_get_expr(c.relpartbound, c.oid) as bound,
      case when c.relkind = 'p' then pg_get_partkeydef(c.oid) end as part_key
    from tree join pg_class c on c.oid = tree.oid where depth > 0 order by depth, tree.relname`);
  return inOrder(
    tables.map(({ oid, ...table }) => ({
      ...table,
      partitions: partitions.filter(({ root }) => root === oid).map(({ root: _root, ...partition }) => partition),
    })),
  );
}

/** Values of all sequences; sequences ignore snapshots, so that no value is below the rows of an earlier snapshot. */
export function readSequences(db: Queryable): Promise<SequenceValue[]> {
  return db.query<SequenceValue>(
    `select ${named('schemaname', 'sequencename')} as name, last_value from pg_sequences
     where schemaname in ${SCHEMAS} order by 1`,
  );
}

/** Sorts tables by foreign keys. @throws Error when these are circular, which no order can satisfy */
function inOrder(tables: TableShape[]): TableShape[] {
  const ordered: TableShape[] = [];
  const placed = new Set<string>();
  let left = tables;
  while (left.length > 0) {
    const ready = left.filter(({ refers_to }) => refers_to.every((name) => placed.has(name)));
    if (ready.length === 0) throw new Error(`foreign keys go in a circle: ${left.map(({ name }) => name).join(', ')}`);
    for (const table of ready) {
      placed.add(table.name);
      ordered.push(table);
    }
    left = left.filter(({ name }) => !placed.has(name));
  }
  return ordered;
}
