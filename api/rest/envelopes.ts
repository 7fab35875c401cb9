import type { Operation } from '../../app/operation';
import type { Shown } from '../../kernel/operations/pages';
import { linkWith } from './links';

type Json = Record<string, unknown>;

/** Body of a REST answer around an operation's output. Source: spec doc2 §2.1. */
export interface Enveloped {
  /** JSON Schema of the whole body. */
  schema(one: Json): Json;
  /** `self` is the link of the result: the request's own, or the one of a created resource. */
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

/**
 * Envelope of a list. `prev` and `next` are absent at the ends; a list without pages is its own first and last. `next`
 * of a page that was cut by its bytes is the rest of that page.
 * @param size_member null for a list without pages
 */
function collection(size_member: string | null): Enveloped {
  return {
    schema: (one) =>
      closed({
        data: list(one),
        _links: closed({ self: URL, first: URL, prev: URL, next: URL, last: URL }, ['prev', 'next']),
        _meta: closed(
          {
            ...{ total: COUNT, page: COUNT, limit: COUNT, pages: COUNT },
            partial: { type: 'boolean' },
            ...(size_member !== null && { next_cursor: { type: 'string' } }),
          },
          ['partial', 'next_cursor'],
        ),
      }),
    body(result, self) {
      const { items, partial, next, ...counts } = result as Required<Shown>;
      const { total, page, limit } = counts;
      const pages = Math.max(1, Math.ceil(total / limit));
      const at = size_member === null ? () => self : linkWith(wholePages(self, size_member, limit), 'page');
      const cut = typeof next === 'string';
      return {
        data: items,
        _links: {
          self,
          first: at(1),
          ...(page > 1 && { prev: at(Math.min(page - 1, pages)) }),
          ...(cut ? { next: linkWith(self, 'cursor')(next) } : page < pages && { next: at(page + 1) }),
          last: at(pages),
        },
        _meta: {
          ...{ total, page, limit, pages },
          ...(partial !== undefined && { partial }),
          ...(cut && { next_cursor: next }),
        },
      };
    },
  };
}

/** Turns the link of the rest of a page into one of whole pages of the same size. */
function wholePages(self: string, size_member: string, rows: number): string {
  const whole = linkWith(self, 'cursor')(null);
  return whole === self ? self : linkWith(whole, size_member)(rows);
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

/** `prev` leads to newer rows, `next` to older ones. */
const timeline: Enveloped = {
  schema: (one) =>
    closed({
      data: list(one),
      _links: closed({ self: URL, first: URL, prev: URL, next: URL }, ['prev', 'next']),
      _meta: closed({
        limit: COUNT,
        next_cursor: { type: ['string', 'null'] },
        prev_cursor: { type: ['string', 'null'] },
      }),
    }),
  body(result, self) {
    const { items, limit, next, prev } = result as Required<Shown>;
    const at = linkWith(linkWith(self, 'around')(null), 'cursor');
    return {
      data: items,
      _links: {
        self,
        first: at(null),
        ...(prev !== null && { prev: at(prev) }),
        ...(next !== null && { next: at(next) }),
      },
      _meta: { limit, next_cursor: next, prev_cursor: prev },
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
      return collection(pages.size_member);
    case 'whole':
      return collection(null);
    case 'cursor':
      return cursored;
    case 'timeline':
      return timeline;
    case 'offset':
      return pages.rest === 'items' ? counted : listed;
    case undefined:
      return rest!.envelope === 'empty' ? null : rest!.envelope === 'item' ? item : bare;
  }
}
