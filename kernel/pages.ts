import { z } from 'zod';
import type { Queryable } from '../engines/postgres/port';

/**
 * How a query's many rows are cut: what a request says of the page, what `run` is given, and what is shown of its
 * result.
 */
interface Kind<Name extends string> {
  readonly kind: Name;
  /** GraphQL name of the result (`PaginatedEventResult`); without one GraphQL answers a plain list of the items. */
  readonly type: string | undefined;
  /** Members of the input beside the query's own. */
  readonly members: Readonly<Record<string, z.ZodType>>;
  /** The page that a validated input asks for. */
  asked(input: Readonly<Record<string, unknown>>): unknown;
  /** What is answered of it, from what `run` returned. */
  shown(asked: never, result: never): Shown;
}

/** Pages by number: `{data, _links, _meta}` on REST. Source: spec doc2 §2.1. */
export type Numbered = Kind<'numbered'>;
/** Pages by offset: `{items, total}` on both protocols, or `{data}` on REST. Source: spec doc2 §2.1, §2.11. */
export type Offset = Kind<'offset'> & { readonly rest: 'items' | 'data' };
/** Pages from where the last one ended; as deep as one likes. `Key` is what rows are ordered by. */
export type Cursor<Key = unknown> = Kind<'cursor'> & { readonly key: z.ZodType<Key> };
/** All there is, where that is little. */
export type Whole = Kind<'whole'>;
export type PageKind = Numbered | Offset | Cursor | Whole;

/** A page as the front door shows it. */
export interface Shown {
  items: readonly unknown[];
  total?: number;
  page?: number;
  limit?: number;
  /** True when counting or searching stopped at its budget: `total` is then a lower bound. */
  partial?: boolean;
  /** Where the next page begins; null at the end. */
  next?: string | null;
}

/** The rows that a page holds. */
export interface Rows {
  limit: number;
  offset: number;
}

/** The page that `run` is asked for. */
export type Asked<P> =
  P extends Cursor<infer Key>
    ? { limit: number; after: Key | null }
    : P extends Numbered
      ? Rows & { page: number }
      : P extends Offset
        ? Rows
        : undefined;

/** What `run` returns of it. */
export type Found<P, T> =
  P extends Cursor<infer Key>
    ? { items: T[]; next: Key | null }
    : P extends Whole
      ? T[]
      : P extends Numbered
        ? { items: T[]; total: number; partial?: boolean }
        : P extends Offset
          ? { items: T[]; total: number }
          : T;

interface Size {
  /** Items of a page that does not say. Default 25. */
  items?: number;
  /** Items that a page may ask for. Default 100. */
  most?: number;
}

const size = ({ items = 25, most = 100 }: Size) =>
  z.int().min(1).max(most).nullish().describe(`Default ${items}, at most ${most}`);

/**
 * Deep pages cost what lies before them, so that there is a last page that may be asked for (default 1,000): who wants
 * more asks by filter.
 */
export function numbered(
  type?: string,
  { pages = 1000, limit = 'limit', ...of }: Size & { pages?: number; /** Its name in requests. */ limit?: string } = {},
): Numbered {
  return {
    kind: 'numbered',
    type,
    members: {
      page: z.int().min(1).max(pages).nullish().describe('From 1; default 1'),
      [limit]: size(of),
    },
    asked(input) {
      const page = (input.page ?? 1) as number;
      const items = (input[limit] ?? of.items ?? 25) as number;
      return { page, limit: items, offset: (page - 1) * items };
    },
    shown: ({ page, limit: items }: Asked<Numbered>, found: Found<Numbered, unknown>) => ({
      ...found,
      page,
      limit: items,
    }),
  };
}

/** `deepest`: the greatest offset, default 10,000, since rows before it are read. */
export function offset(
  type?: string,
  { deepest = 10_000, rest = 'items', ...of }: Size & { deepest?: number; rest?: Offset['rest'] } = {},
): Offset {
  return {
    kind: 'offset',
    type,
    rest,
    members: { limit: size(of), offset: z.int().min(0).max(deepest).nullish().describe('Default 0') },
    asked: (input) => ({ limit: input.limit ?? of.items ?? 25, offset: input.offset ?? 0 }),
    shown: (_asked: Asked<Offset>, found: Found<Offset, unknown>) => found,
  };
}

const LONGEST_CURSOR = 1000;

/**
 * `key`: the last row's place in the order, as `run` returns it for the next page and gets it back; it must tell rows
 * apart. A cursor is no secret and opens nothing: the query names the account itself.
 */
export function cursor<Key>(key: z.ZodType<Key>, type?: string, of: Size = {}): Cursor<Key> {
  const read = (text: string) => {
    try {
      return key.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString()));
    } catch {
      return { success: false, data: undefined };
    }
  };
  const member = z
    .string()
    .max(LONGEST_CURSOR)
    .refine((text) => read(text).success, 'cursor is none that was answered here')
    .meta({ pattern: '^[A-Za-z0-9_-]+$' });
  return {
    kind: 'cursor',
    type,
    key,
    members: { cursor: member.nullish().describe('Of the page before; default: the first page'), limit: size(of) },
    asked: (input) => ({
      limit: input.limit ?? of.items ?? 25,
      after: typeof input.cursor === 'string' ? read(input.cursor).data : null,
    }),
    shown: ({ limit }: Asked<Cursor<Key>>, { items, next }: Found<Cursor<Key>, unknown>) => ({
      items,
      limit,
      next: next === null ? null : Buffer.from(JSON.stringify(next)).toString('base64url'),
    }),
  };
}

/** A list that takes no page is its own first and last. */
export function whole(): Whole {
  return {
    kind: 'whole',
    type: undefined,
    members: {},
    asked: () => undefined,
    shown: (_asked: never, items: readonly unknown[]) => ({
      items,
      total: items.length,
      page: 1,
      limit: Math.max(1, items.length),
    }),
  };
}

/** What a page is of; parameters are `$1` and on. */
export interface PageQuery {
  /** Tables and conditions: `notes where account_id = $1`. */
  from: string;
  /** Must tell rows apart, or pages overlap. */
  order: string;
  values: readonly unknown[];
}

/**
 * The rows of one page and how many there are in all, from one statement and so from one snapshot. The columns are
 * those that the schema of a row names.
 */
export async function rowsOf<S extends z.ZodObject>(
  db: Queryable,
  { limit, offset }: Rows,
  row: S,
  { from, order, values }: PageQuery,
): Promise<{ items: z.output<S>[]; total: number }> {
  const columns = Object.keys(row.shape).join(', ');
  const [limited, skipped] = [values.length + 1, values.length + 2];
  const found = await db.query(
    `select counted.total, page.* from (select count(*)::int as total from ${from}) counted
     left join (
       select ${columns}, row_number() over (order by ${order}) as row_place from ${from}
       order by ${order} limit $${limited} offset $${skipped}
     ) page on true order by row_place`,
    [...values, limit, offset],
  );
  const items = found.flatMap(({ total: _total, row_place, ...shown }) => {
    return row_place === null ? [] : [shown as z.output<S>];
  });
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
