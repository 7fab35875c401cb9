import type { Queryable } from '../../engines/postgres/port';

/** Partitions of a time: which there are depends on the day. */
const OF_A_TIME = /_\d{4}_(q\d|\d{2}(_\d{2}_\d{6})?)$/;

const SCHEMAS = `
  select n.oid::int8 as oid, n.nspname::text as name from pg_namespace n
  where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' order by n.nspname <> 'public', n.nspname`;
const TYPES = `
  select t.oid::int8 as oid, t.typname::text as name, t.typtype::text as kind,
    (select array_agg(quote_literal(e.enumlabel) order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid) as labels,
    format_type(t.typbasetype, t.typtypmod) as base,
    (select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)
       from pg_attribute a where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped) as members
  from pg_type t left join pg_class c on c.oid = t.typrelid
  where t.typnamespace = $1 and (t.typtype in ('e', 'd') or t.typtype = 'c' and c.relkind = 'c') order by t.typname`;
const TABLES = `
  select c.oid::int8 as oid, c.relname::text as name, c.relkind::text as kind, c.reloptions as options,
    pg_get_partkeydef(c.oid) as key, pg_get_expr(c.relpartbound, c.oid) as bound,
    (select i.inhparent::regclass::text from pg_inherits i where i.inhrelid = c.oid) as parent,
    case when c.relkind = 'v' then pg_get_viewdef(c.oid) end as view
  from pg_class c where c.relnamespace = $1 and c.relkind in ('r', 'p', 'v', 'S')
    and not exists (select from pg_depend d where d.objid = c.oid and d.objsubid = 0 and d.deptype in ('i', 'e'))
  order by c.relname`;
const COLUMNS = `
  select a.attname::text as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
    a.attidentity::text as identity, a.attgenerated::text as generated, pg_get_expr(d.adbin, d.adrelid) as value,
    (select l.collname::text from pg_collation l where l.oid = a.attcollation and l.collname <> 'default') as collation
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum`;
const CONSTRAINTS = `
  select conname::text as name, pg_get_constraintdef(oid) as text from pg_constraint
  where conrelid = $1 and contype <> 'n' and coninhcount = 0 order by contype <> 'p', conname`;
const INDEXES = `
  select pg_get_indexdef(i.indexrelid) as text from pg_index i join pg_class c on c.oid = i.indexrelid
  where i.indrelid = $1 and not c.relispartition
    and not exists (select from pg_constraint k where k.conindid = i.indexrelid) order by c.relname`;
const TRIGGERS = `
  select pg_get_triggerdef(oid) as text from pg_trigger where tgrelid = $1 and not tgisinternal order by tgname`;
const FUNCTIONS = `
  select p.proname::text as name, pg_get_functiondef(p.oid) as text, obj_description(p.oid, 'pg_proc') as comment
  from pg_proc p where p.pronamespace = $1 and p.prokind in ('f', 'p')
    and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
  order by p.proname, pg_get_function_identity_arguments(p.oid)`;

interface Column {
  name: string;
  type: string;
  required: boolean;
  identity: '' | 'a' | 'd';
  generated: '' | 's' | 'v';
  value: string | null;
  collation: string | null;
}

/** What the migrations build, as text in an order that depends on nothing but names: for reading and for comparing. */
export async function dumpSchema(db: Queryable): Promise<string> {
  const blocks = ['-- What the migrations build. Written by npm run schema; a test holds it.'];
  for (const { oid, name } of await db.query<{ oid: number; name: string }>(SCHEMAS)) {
    const before = name === 'public' ? '' : `${name}.`;
    if (before) blocks.push(`create schema ${name};`);
    for (const type of await db.query(TYPES, [oid])) blocks.push(typeText(before, type));
    for (const table of await db.query(TABLES, [oid])) {
      if (!OF_A_TIME.test(table.name as string)) blocks.push(await tableText(db, before, table));
    }
    for (const { name: of, text, comment } of await db.query(FUNCTIONS, [oid])) {
      const lines = (text as string)
        .trimEnd()
        .split('\n')
        .map((line) => line.trimEnd());
      blocks.push(`-- function ${before}${of}${comment === null ? '' : `, ${comment}`}\n${lines.join('\n')};`);
    }
  }
  return `${blocks.join('\n\n')}\n`;
}

function typeText(before: string, { name, kind, labels, base, members }: Record<string, any>): string {
  const what = kind === 'e' ? `enum (${labels.join(', ')})` : `(${members})`;
  return kind === 'd' ? `create domain ${before}${name} as ${base};` : `create type ${before}${name} as ${what};`;
}

async function tableText(db: Queryable, before: string, table: Record<string, any>): Promise<string> {
  const name = `${before}${table.name}`;
  if (table.kind === 'S') return `create sequence ${name};`;
  if (table.kind === 'v') return `create view ${name} as\n${table.view}`;
  const columns = await db.query<Column>(COLUMNS, [table.oid]);
  const constraints = await db.query<{ name: string; text: string }>(CONSTRAINTS, [table.oid]);
  const members = [...columns.map(columnText), ...constraints.map((one) => `constraint ${one.name} ${one.text}`)];
  const options = table.options === null ? '' : ` with (${(table.options as string[]).join(', ')})`;
  const key = table.key === null ? '' : ` partition by ${table.key}`;
  const head =
    table.parent === null ? `(\n  ${members.join(',\n  ')}\n)` : `partition of ${table.parent} ${table.bound}`;
  const beside = [
    ...(await db.query<{ text: string }>(INDEXES, [table.oid])),
    ...(await db.query<{ text: string }>(TRIGGERS, [table.oid])),
  ];
  return [`create table ${name} ${head}${key}${options};`, ...beside.map(({ text }) => shortened(`${text};`))].join(
    '\n',
  );
}

/** A long index in two lines. */
const shortened = (text: string) => (text.length > 120 ? text.replace(' USING ', '\n  USING ') : text);

function columnText({ name, type, required, identity, generated, value, collation }: Column): string {
  const of = collation === null ? '' : ` collate "${collation}"`;
  const always = identity === 'a' ? 'always' : 'by default';
  const made =
    identity !== '' ? ` generated ${always} as identity` : generated !== '' ? ` generated always as (${value})` : '';
  const plain = made === '' && value !== null ? ` default ${value}` : '';
  return `${name} ${type}${of}${required ? ' not null' : ''}${made}${plain}`;
}

/** The functions of a dump, by name: their version and text. */
export function functionsOf(dump: string): Map<string, { version: number; text: string }> {
  const found = [
    ...dump.matchAll(/^-- function (\S+), version (\d+)\n([^]*?)(?=\n\n(?:-- function|create )|$(?![^]))/gm),
  ];
  return new Map(found.map(([, name, version, text]) => [name!, { version: Number(version), text: text! }]));
}

/** Functions whose text is another one under a version that has been there: a database would keep the old one. */
export function unraised(before: string, now: string): string[] {
  const earlier = functionsOf(before);
  return [...functionsOf(now)]
    .filter(([name, { version, text }]) => {
      const old = earlier.get(name);
      return old !== undefined && (version < old.version || (version === old.version && text !== old.text));
    })
    .map(([name]) => name);
}
