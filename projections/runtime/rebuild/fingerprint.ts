import { createHash } from 'node:crypto';
import type { Queryable } from '../../../engines/postgres/port';
import type { Projection } from '../../../kernel/projection';

/** Definition of a projection's rows as text, as far as the program itself can read it. */
export function definitionText(p: Projection): string {
  const { tables, late_indexes, program, apply, loaded } = p;
  const late_ledger = 'late_ledger' in p && p.late_ledger && [p.late_ledger.table, String(p.late_ledger.at_once)];
  return JSON.stringify([
    sourceKey(p),
    tables,
    late_indexes,
    program ?? [String(apply), String(loaded)],
    ...(late_ledger ? [late_ledger] : []),
  ]);
}

/** Source of the rows; for a projection of every event, independent of the list of types. */
export const sourceKey = ({ from }: Pick<Projection, 'from'>): unknown =>
  from.kind === 'domain_events' && from.every ? { ...from, types: undefined } : from;

/** Text of the tables' shape: columns, constraints and indexes, not the partitions that are added over time. */
export async function tableSchemaText(db: Queryable, tables: readonly string[]): Promise<string> {
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

/** Hash of the definition and the tables' shape: a build of another program, or of another shape, is not continued. */
export async function projectionFingerprint(db: Queryable, p: Projection): Promise<string> {
  return createHash('sha256')
    .update(definitionText(p))
    .update(await tableSchemaText(db, p.tables))
    .digest('hex');
}
