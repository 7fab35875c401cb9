import type { Operation } from '../access/operation';
import type { Shown } from '../kernel/pages';
import { linkWith } from './links';

type Json = Record<string, unknown>;

/** What REST answers around an operation's output. Source: spec doc2 §2.1. */
export interface Enveloped {
  /** JSON Schema of the whole body. */
  schema(one: Json): Json;
  /** `self` is the link of what is answered: the request's own, or where what was made is. */
  body(result: unknown, self: string): unknown;
}

const URL: Json = { type: 'string', format: 'uri-reference' };
const COUNT: Json = { type: 'integer', minimum: 0 };
const list = (items: Json): Json => ({ type: 'array', items });

const closed = (properties: Json, optional: readonly string[] = []): Json => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false,
});

const item: Enveloped = {
  schema: (one) => closed({ data: one, _links: closed({ self: URL }) }),
  body: (data, self) => ({ data, _links: { self } }),
};
const bare: Enveloped = { schema: (one) => one, body: (result) => result };

/** `prev` and `next` are left out at the ends; a list that takes no page is its own first and last. */
function collection(numbered: boolean): Enveloped {
  return {
    schema: (one) =>
      closed({
        data: list(one),
        _links: closed({ self: URL, first: URL, prev: URL, next: URL, last: URL }, ['prev', 'next']),
        _meta: closed({ total: COUNT, page: COUNT, limit: COUNT, pages: COUNT, partial: { type: 'boolean' } }, [
          'partial',
        ]),
      }),
    body(result, self) {
      const { items, partial, ...counts } = result as Required<Shown>;
      const { total, page, limit } = counts;
      const pages = Math.max(1, Math.ceil(total / limit));
      const at = numbered ? linkWith(self, 'page') : () => self;
      return {
        data: items,
        _links: {
          self,
          first: at(1),
          ...(page > 1 && { prev: at(Math.min(page - 1, pages)) }),
          ...(page < pages && { next: at(page + 1) }),
          last: at(pages),
        },
        _meta: { total, page, limit, pages, ...(partial !== undefined && { partial }) },
      };
    },
  };
}

const cursored: Enveloped = {
  schema: (one) =>
    closed({
      data: list(one),
      _links: closed({ self: URL, first: URL, next: URL }, ['next']),
      _meta: closed({ limit: COUNT, next_cursor: { type: ['string', 'null'] } }),
    }),
  body(result, self) {
    const { items, limit, next } = result as Required<Shown>;
    const at = linkWith(self, 'cursor');
    return {
      data: items,
      _links: { self, first: at(null), ...(next !== null && { next: at(next) }) },
      _meta: { limit, next_cursor: next },
    };
  },
};

const counted: Enveloped = { schema: (one) => closed({ items: list(one), total: COUNT }), body: (result) => result };
const listed: Enveloped = {
  schema: (one) => closed({ data: list(one) }),
  body: (result) => ({ data: (result as Shown).items }),
};

/** Null for an answer without a body. */
export function envelopeOf({ rest, pages }: Pick<Operation, 'rest' | 'pages'>): Enveloped | null {
  switch (pages?.kind) {
    case 'numbered':
      return collection(true);
    case 'whole':
      return collection(false);
    case 'cursor':
      return cursored;
    case 'offset':
      return pages.rest === 'items' ? counted : listed;
    case undefined:
      return rest!.envelope === 'empty' ? null : rest!.envelope === 'item' ? item : bare;
  }
}
