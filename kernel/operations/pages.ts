import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';

/**
 * Paging of a query's rows: the members of a request, the argument of `run`, and the answer made of its result.
 */
interface Kind<Name extends string> {
  readonly kind: Name;
  /** GraphQL name of the result (`PaginatedEventResult`); without one GraphQL answers a plain list of the items. */
  readonly type: string | undefined;
  /** Members of the input besides the query's own. */
  readonly members: Readonly<Record<string, z.ZodType>>;
  /** The page that a validated input asks for, and the most bytes of rows that it may hold. */
  asked(input: Readonly<Record<string, unknown>>, max_bytes: number): unknown;
  /** The answer for a page, made of the result of `run`. */
  shown(asked: never, result: never, bytes_of: BytesOf): Shown;
}

/** Approximate bytes of a row, as far as callers choose them. */
export type BytesOf = (row: unknown) => number;

/** Bytes of rows after which a page ends; it has at least one row. */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/** Pages by number: `{data, _links, _meta}` on REST. Source: spec doc2 §2.1. */
export type Numbered = Kind<'numbered'> & { /** Name of the page's size in requests. */ readonly size_member: string };
/** Pages by offset: `{items, total}` on both protocols, or `{data}` on REST. Source: spec doc2 §2.1, §2.11. */
export type Offset = Kind<'offset'> & { readonly rest: 'items' | 'data' };
/** Pages from where the last one ended; as deep as one likes. `Key` is what rows are ordered by. */
export type Cursor<Key = unknown> = Kind<'cursor'> & { readonly key: z.ZodType<Key> };
/** Pages of a timeline: from where another one began to newer rows, or ended to older ones. */
export type Timeline<Key = unknown> = Kind<'timeline'> & { readonly key: z.ZodType<Key> };
/** All there is, where that is little. */
export type Whole = Kind<'whole'>;
export type PageKind = Numbered | Offset | Cursor | Timeline | Whole;

/** A page as the front door shows it. */
export interface Shown {
  items: readonly unknown[];
  total?: number;
  page?: number;
  limit?: number;
  /** True when counting or searching stopped at its budget: `total` is then a lower bound. */
  partial?: boolean;
  /** Where the next page begins, null at the end; of numbered pages the rest of one that its bytes ended. */
  next?: string | null;
  /** Place of a timeline behind which newer rows begin; null of a page without rows. */
  prev?: string | null;
}

/** The rows that a page holds. */
export interface Rows {
  limit: number;
  offset: number;
}

interface Bounded {
  /** A query may leave out the rows behind the one that reaches as many bytes; see {@link MAX_PAGE_BYTES}. */
  max_bytes: number;
}

const WAYS = ['older', 'newer'] as const;
/** Direction in which a timeline continues. */
export type Way = (typeof WAYS)[number];

/** The page that `run` is asked for. */
export type Asked<P> =
  P extends Cursor<infer Key>
    ? Bounded & { limit: number; after: Key | null }
    : P extends Timeline<infer Key>
      ? Bounded & { limit: number; from: { way: Way; key: Key } | null }
      : P extends Numbered
        ? Bounded & Rows & { page: number; /** Rows of a whole page; `limit` is of its rest. */ page_rows: number }
        : P extends Offset
          ? Bounded & Rows
          : undefined;

/** Return type of `run` for a page kind. */
export type ReadPage<P, T> =
  P extends Cursor<infer Key>
    ? { items: T[]; next: Key | null; key_of: (index: number) => Key }
    : P extends Timeline<infer Key>
      ? { items: T[]; older: Key | null; newer: Key | null }
      : P extends Whole
        ? T[]
        : P extends Numbered
          ? { items: T[]; total: number; partial?: boolean; /** There are more rows of this page. */ cut?: boolean }
          : P extends Offset
            ? { items: T[]; total: number }
            : T;

interface Size {
  /** Items of a page without a stated size. Default 25. */
  items?: number;
  /** Items that a page may ask for. Default 100. */
  most?: number;
}

const size = ({ items = 25, most = 100 }: Size) =>
  z.int().min(1).max(most).nullish().describe(`Default ${items}, at most ${most}`);

/** How many rows a page holds: all, or those before the one that would begin beyond its bytes. */
function fitting(rows: readonly unknown[], max_bytes: number, bytes_of: BytesOf): number {
  let bytes = 0;
  for (let count = 0; count < rows.length; count += 1) {
    if (bytes >= max_bytes) return count;
    bytes += bytes_of(rows[count]);
  }
  return rows.length;
}

const LONGEST_CURSOR = 1000;

/** Cursors are the JSON of a key; one opens nothing, since the query names the account itself. */
const cursorOf = (key: unknown): string => Buffer.from(JSON.stringify(key)).toString('base64url');

function readCursor<Key>(key: z.ZodType<Key>, text: string): { success: boolean; data?: Key | undefined } {
  try {
    return key.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString()));
  } catch {
    return { success: false };
  }
}

const cursorMember = <Key>(key: z.ZodType<Key>) =>
  z
    .string()
    .max(LONGEST_CURSOR)
    .refine((text) => readCursor(key, text).success, 'cursor is none that was answered here')
    .meta({ pattern: '^[A-Za-z0-9_-]+$' })
    .nullish();

/**
 * Deep pages cost what lies before them, so that there is a last page that may be asked for (default 1,000): who wants
 * more asks by filter. A page of great rows ends early, and a cursor leads to its rest; without a GraphQL type, which
 * has no member for the cursor, pages are always whole.
 */
export function numbered(
  type?: string,
  { pages = 1000, limit = 'limit', ...of }: Size & { pages?: number; /** Its name in requests. */ limit?: string } = {},
): Numbered {
  const most = of.most ?? 100;
  /** Rows before the rest of a page, and rows of a whole page. */
  const rest = z.tuple([
    z
      .int()
      .min(0)
      .max(pages * most),
    z.int().min(1).max(most),
  ]);
  return {
    kind: 'numbered',
    type,
    size_member: limit,
    members: {
      page: z.int().min(1).max(pages).nullish().describe('From 1; default 1'),
      [limit]: size(of),
      ...(type !== undefined && {
        cursor: cursorMember(rest).describe('The rest of a page that its bytes ended; goes before page and limit'),
      }),
    },
    asked(input, max_bytes) {
      if (typeof input.cursor === 'string') {
        const [offset, page_rows] = readCursor(rest, input.cursor).data!;
        const skipped = offset % page_rows;
        const page = (offset - skipped) / page_rows + 1;
        return { page, page_rows, limit: page_rows - skipped, offset, max_bytes };
      }
      const page = (input.page ?? 1) as number;
      const items = (input[limit] ?? of.items ?? 25) as number;
      const bytes = type === undefined ? Infinity : max_bytes;
      return { page, page_rows: items, limit: items, offset: (page - 1) * items, max_bytes: bytes };
    },
    shown({ page, page_rows, offset, max_bytes }: Asked<Numbered>, found: ReadPage<Numbered, unknown>, bytes_of) {
      const { cut = false, ...counts } = found;
      const count = fitting(found.items, max_bytes, bytes_of);
      const items = count === found.items.length ? found.items : found.items.slice(0, count);
      const next = cut || items !== found.items ? cursorOf([offset + count, page_rows]) : null;
      return { ...counts, items, page, limit: page_rows, next };
    },
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
    asked: (input, max_bytes) => ({ limit: input.limit ?? of.items ?? 25, offset: input.offset ?? 0, max_bytes }),
    // Rows that `max_bytes` cuts off begin at the next offset.
    shown: ({ max_bytes }: Asked<Offset>, { items, total }: ReadPage<Offset, unknown>, bytes_of) => ({
      items: items.slice(0, fitting(items, max_bytes, bytes_of)),
      total,
    }),
  };
}

/**
 * `key`: the last row's place in the order, as `run` returns it for the next page and gets it back; it must tell rows
 * apart.
 */
export function cursor<Key>(key: z.ZodType<Key>, type?: string, of: Size = {}): Cursor<Key> {
  return {
    kind: 'cursor',
    type,
    key,
    members: { cursor: cursorMember(key).describe('Of the page before; default: the first page'), limit: size(of) },
    asked: (input, max_bytes) => ({
      limit: input.limit ?? of.items ?? 25,
      after: typeof input.cursor === 'string' ? readCursor(key, input.cursor).data : null,
      max_bytes,
    }),
    shown({ limit, max_bytes }: Asked<Cursor<Key>>, found: ReadPage<Cursor<Key>, unknown>, bytes_of) {
      const count = fitting(found.items, max_bytes, bytes_of);
      const next = count < found.items.length ? found.key_of(count - 1) : found.next;
      return { items: found.items.slice(0, count), limit, next: next === null ? null : cursorOf(next) };
    },
  };
}

/** `key` is a row's place in the order, and unique. The query itself limits the bytes of a page. */
export function timeline<Key>(key: z.ZodType<Key>, type: string, of: Size = {}): Timeline<Key> {
  const place = z.tuple([z.enum(WAYS), key]);
  return {
    kind: 'timeline',
    type,
    key,
    members: {
      cursor: cursorMember(place).describe('Of another page, to its older or newer rows; default: the newest rows'),
      limit: size(of),
    },
    asked(input, max_bytes) {
      const [way, from] = typeof input.cursor === 'string' ? readCursor(place, input.cursor).data! : [];
      const limit = input.limit ?? of.items ?? 25;
      return { limit, from: way === undefined ? null : { way, key: from }, max_bytes };
    },
    shown({ limit }: Asked<Timeline<Key>>, { items, older, newer }: ReadPage<Timeline<Key>, unknown>) {
      const to = (way: Way, from: Key | null) => (from === null ? null : cursorOf([way, from]));
      return { items, limit, next: to('older', older), prev: to('newer', newer) };
    },
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

/** Rows behind a page; parameters are `$1` and on. */
export interface PageQuery {
  /** Tables and conditions: `notes where account_id = $1`. */
  from: string;
  /** Must be unique per row, or pages overlap. */
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

/** Cuts a page; `rows` has one row more than `limit` when a next page exists. `keyOf` returns a row's key. */
export function cut<T, Key>(
  rows: readonly T[],
  limit: number,
  keyOf: (row: T) => Key,
): { items: T[]; next: Key | null; key_of: (index: number) => Key } {
  const items = rows.slice(0, limit);
  const key_of = (index: number) => keyOf(items[index]!);
  return { items, next: rows.length > limit ? key_of(items.length - 1) : null, key_of };
}
