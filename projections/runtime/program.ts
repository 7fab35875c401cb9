import { createHash } from 'node:crypto';
import type { Queryable } from '../../engines/postgres/port';
import type { Projection } from '../../kernel/projection';

/** What a projection's rows follow from in this program, as far as the program itself can see it. */
export function programOf(p: Projection): string {
  const { tables, late_indexes, program, apply, loaded } = p;
  const late_ledger = 'late_ledger' in p && p.late_ledger && [p.late_ledger.table, String(p.late_ledger.at_once)];
  return JSON.stringify([
    sourceOfRows(p),
    tables,
    late_indexes,
    program ?? [String(apply), String(loaded)],
    ...(late_ledger ? [late_ledger] : []),
  ]);
}

/** Where its rows come from; what reads every event does not depend on which there are. */
export const sourceOfRows = ({ from }: Pick<Projection, 'from'>): unknown =>
  from.kind === 'domain_events' && from.every ? { ...from, types: undefined } : from;

/** What the tables are: columns, constraints and indexes, not the partitions that come with time. */
export async function shapeOf(db: Queryable, tables: readonly string[]): Promise<string> {
  const rows = await db.query<{ shape: string }>(
    `with root as (
       select oid from pg_class where oid = any(select to_regclass('public.' || t) from unnest($1::text[]) t))
     select format('%s %s %s %s %s %s', attrelid::regclass, attname, format_type(atttypid, atttypmod),
         attnotnull, attidentity::text || attgenerated::text, pg_get_expr(adbin, adrelid)) as shape
       from root join pg_attribute on attrelid = oid and attnum > 0 and not attisdropped
       left join pg_attrdef on adrelid = attrelid and adnum = attnum
     union all
     select format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(pg_constraint.oid))
       from root join pg_constraint on conrelid = root.oid and contype <> 'n'
     union all
     select pg_get_indexdef(indexrelid) from root join pg_index on indrelid = root.oid
     union all
     select format('%s %s', oid::regclass, pg_get_partkeydef(oid)) from root where pg_get_partkeydef(oid) is not null
     order by 1`,
    [tables],
  );
  return rows.map(({ shape }) => shape).join('\n');
}

/** A hash over both: tables that another program made, or of another shape, are not gone on with. */
export async function madeOf(db: Queryable, p: Projection): Promise<string> {
  return createHash('sha256')
    .update(programOf(p))
    .update(await shapeOf(db, p.tables))
    .digest('hex');
}
