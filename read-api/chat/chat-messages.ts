import { z } from 'zod';
import {
  feature,
  get,
  invalid,
  notFound,
  permission,
  query,
  rateLimited,
  type Refuse,
  timeline,
} from '../../app/operation';
import type { RequestContext } from '../../access/authentication/caller';
import { ChatHistoryMessage } from '../../domain/chat/chat-history';
import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import type { Database } from '../../engines/postgres/port';
import { DomainError } from '../../kernel/errors';
import { readInstant, readRange } from '../../lib/time/instants';
import {
  authorsNamed,
  authorsOf,
  type ChatFilter,
  countAll,
  countThrough,
  isCounted,
  type Looked,
  lookThrough,
  type MessageRow,
  placeOf,
  type Reading,
  shownRow,
  type TextFilter,
} from '../../views/chat/chat-messages';
import { FairSearchQueue } from '../events/fair-search-queue';

/** Milliseconds of one search, including the wait in the queue. */
const SEARCH_BUDGET_MS = 2000;
/** Messages that one statement looks through. */
const WINDOW = 10_000;
const COUNT_WINDOW = 50_000;
/** Concurrent searches per process, one per account, and the longest queue of others. */
const turns = new FairSearchQueue(2, 20);

const filters = {
  platform: z.string().max(1000).nullish().describe('Platform slug; several by commas'),
  user_id: z.string().min(1).max(200).nullish().describe("The platform's id of the author"),
  from: readInstant('from').nullish().describe('ISO 8601: not before this'),
  to: readInstant('to').nullish().describe('ISO 8601: before this'),
  search: z
    .string()
    .max(500)
    .nullish()
    .describe('Part of the text, whatever its case; `from:name`, `has:link` and `has:emote` narrow it'),
  live_chat_id: z.string().min(1).max(200).nullish().describe('YouTube: the id of the live chat'),
  deleted: z.boolean().nullish().describe('True: only messages that were deleted; false: only others'),
  paid: z.boolean().nullish().describe('True: only messages with an amount; false: only others'),
};
const ChatMessageFilter = z.object(filters).meta({ id: 'ChatMessageFilterInput' });
const ChatMessagePageFilter = z
  .object({
    ...filters,
    around: z
      .uuid()
      .nullish()
      .describe('Id of a message: answers what stood around it, oldest first, half before and half after'),
  })
  .meta({ id: 'ChatMessagePageFilterInput' });
type Filters = z.output<typeof ChatMessageFilter>;

const errors = {
  ENDS_BEFORE_IT_BEGINS: invalid('from must not be after to'),
  UNKNOWN_PLATFORM: invalid('Unknown platform'),
  // Retry after the longest duration of a search.
  TOO_MANY_SEARCHES: rateLimited('Rate limit exceeded', { retry_after_seconds: SEARCH_BUDGET_MS / 1000 }),
};

/** The account's chat messages, newest first. */
export const chatMessages = query({
  name: 'chatMessages',
  // Source: spec doc2 §4.3 "Chat history filters", extra facts §11.
  summary: "The chat of the account's channels, newest first",
  rest: get('/v1/chat/messages'),
  pages: timeline(z.int(), 'ChatMessagePage'),
  graphql: { argument: 'filter' },
  guard: [feature('feature:multichat'), permission('chat:read')],
  input: ChatMessagePageFilter,
  output: ChatHistoryMessage,
  errors: { ...errors, MESSAGE_NOT_FOUND: notFound('Message not found') },
  async run({ input, caller, context, page, refuse }, { db }) {
    const asked = await askedFor(db, caller.account_id, input, refuse, context.onGone);
    if (asked === null) return { items: [], older: null, newer: null };
    const { limit, from, max_bytes } = page;
    const read = (way: Reading['way'], from_place: number | null, rows: number) =>
      reading(db, { ...asked, way, from_place, limit: rows }, max_bytes, context.onGone);
    if (input.around) {
      const place = await placeOf(db, caller.account_id, input.around);
      if (place === undefined) throw refuse('MESSAGE_NOT_FOUND');
      const after = await read('newer', place, Math.floor(limit / 2));
      const before = await read('older', place + 1, limit - Math.floor(limit / 2));
      const rows = [...before.rows.reverse(), ...after.rows];
      return { items: rows.map(shownRow), older: before.to, newer: after.rows.at(-1)?.place ?? place };
    }
    const { way, key } = from ?? { way: 'older' as const, key: null };
    const found = await read(way, key, limit);
    const newest_first = way === 'older' ? found.rows : found.rows.reverse();
    const items = newest_first.map(shownRow);
    if (way === 'newer')
      return { items, older: newest_first.at(-1)?.place ?? key, newer: found.to ?? newest_first[0]?.place ?? key };
    return { items, older: found.to, newer: newest_first[0]?.place ?? null };
  },
});

/** Number of the account's chat messages. */
export const chatMessageCount = query({
  name: 'chatMessageCount',
  summary: 'How many chat messages there are',
  rest: get('/v1/chat/messages/count'),
  graphql: { argument: 'filter' },
  guard: [feature('feature:multichat'), permission('chat:read')],
  input: ChatMessageFilter,
  output: z
    .object({
      count: z.int().min(0),
      partial: z.boolean().describe('True when counting stopped at its budget: `count` is then a lower bound'),
    })
    .meta({ id: 'ChatMessageCount' }),
  errors,
  async run({ input, caller, context, refuse }, { db }) {
    const asked = await askedFor(db, caller.account_id, input, refuse, context.onGone);
    if (asked === null) return { count: 0, partial: false };
    return countOf(db, asked, context.onGone);
  },
});

type Asked = Pick<Reading, 'filter' | 'text'>;

/** Filters of a request; null where no message can match. */
async function askedFor(
  db: Database,
  account_id: string,
  input: Filters,
  refuse: Refuse<typeof errors>,
  onGone: RequestContext['onGone'],
): Promise<Asked | null> {
  const platforms = platformsOf(input.platform ?? '', refuse);
  const { from, to, reversed } = readRange(input);
  if (reversed) throw refuse('ENDS_BEFORE_IT_BEGINS');
  const { text, author } = wordsOf(input.search ?? '');
  const by_id = input.user_id ? await authorsOf(db, { account_id, platforms }, input.user_id) : null;
  const by_name = author === null ? null : await named(db, account_id, author, onGone);
  const person_keys = by_id && by_name ? by_id.filter((key) => by_name.includes(key)) : (by_id ?? by_name);
  if (person_keys?.length === 0) return null;
  const { live_chat_id = null, deleted = null, paid = null } = input;
  const filter: ChatFilter = {
    account_id,
    platforms,
    person_keys,
    from,
    to,
    live_chat_id,
    deleted,
    paid,
  };
  return { filter, text };
}

/** Keys of authors by their name; reads all people of the account, so it takes a turn as a search does. */
async function named(
  db: Database,
  account_id: string,
  name: string,
  onGone: RequestContext['onGone'],
): Promise<readonly string[]> {
  const keys = await turns.run(account_id, SEARCH_BUDGET_MS, onGone, () => authorsNamed(db, account_id, name));
  if (keys === null) throw new DomainError('TOO_MANY_SEARCHES');
  return keys;
}

function platformsOf(text: string, refuse: Refuse<typeof errors>): Platform[] | null {
  const slugs = [...new Set(text.split(',').flatMap((slug) => slug.trim() || []))];
  if (!slugs.every((slug): slug is Platform => (PLATFORMS as readonly string[]).includes(slug)))
    throw refuse('UNKNOWN_PLATFORM');
  return slugs.length === 0 ? null : slugs;
}

/** Parts of a search: the words that narrow it, and the text that is left. */
function wordsOf(search: string): { text: TextFilter | null; author: string | null } {
  let author: string | null = null;
  const has = new Set<string>();
  const part = search
    .replace(/(?<!\S)from:(\S{1,100})(?!\S)/gi, (_all, name: string) => {
      author = name;
      return ' ';
    })
    .replace(/(?<!\S)has:(link|emote)(?!\S)/gi, (_all, what: string) => {
      has.add(what.toLowerCase());
      return ' ';
    })
    .trim();
  const text = { part: part === '' ? null : part, has_link: has.has('link'), has_emote: has.has('emote') };
  return { text: part === '' && has.size === 0 ? null : text, author };
}

interface Read {
  rows: MessageRow[];
  /** Place where the next page begins; null at the end. */
  to: number | null;
}

/** A page; the next one continues a search that its budget ended. */
async function reading(
  db: Database,
  asked: Omit<Reading, 'window'>,
  max_bytes: number,
  onGone: RequestContext['onGone'],
): Promise<Read> {
  const limit = asked.limit + 1;
  if (asked.limit === 0) return { rows: [], to: asked.from_place };
  if (asked.text === null)
    return cut(await lookThrough(db, { ...asked, limit, window: limit }), asked.limit, max_bytes);
  const begins = asked.from_place ?? (asked.way === 'older' ? Number.MAX_SAFE_INTEGER : 0);
  const found: Looked = { rows: [], looked_to: begins };
  const deadline = Date.now() + SEARCH_BUDGET_MS;
  await turns.run(asked.filter.account_id, SEARCH_BUDGET_MS, onGone, async () => {
    while (found.looked_to !== null && found.rows.length < limit && Date.now() < deadline) {
      const next = { ...asked, from_place: found.looked_to, limit: limit - found.rows.length, window: WINDOW };
      const { rows, looked_to } = await lookThrough(db, next);
      found.rows.push(...rows);
      found.looked_to = looked_to;
    }
  });
  return cut(found, asked.limit, max_bytes);
}

/** The rows up to the one that reaches `max_bytes`; there may be one more than `limit`. */
function cut({ rows, looked_to }: Looked, limit: number, max_bytes: number): Read {
  let bytes = 0;
  const ends = rows.findIndex(({ message, content }) => {
    bytes += message.length + (content?.length ?? 0);
    return bytes >= max_bytes;
  });
  const count = Math.min(limit, ends === -1 ? limit : ends + 1);
  if (rows.length <= count) return { rows, to: rows.length > limit ? rows[limit - 1]!.place : looked_to };
  return { rows: rows.slice(0, count), to: rows[count - 1]!.place };
}

async function countOf(
  db: Database,
  { filter, text }: Asked,
  onGone: RequestContext['onGone'],
): Promise<{ count: number; partial: boolean }> {
  if (text === null && isCounted(filter)) return { count: await countAll(db, filter), partial: false };
  let count = 0;
  let from_place: number | null = Number.MAX_SAFE_INTEGER;
  const deadline = Date.now() + SEARCH_BUDGET_MS;
  await turns.run(filter.account_id, SEARCH_BUDGET_MS, onGone, async () => {
    while (from_place !== null && Date.now() < deadline) {
      const some = await countThrough(db, { filter, text, from_place, window: COUNT_WINDOW });
      count += some.count;
      from_place = some.looked_to;
    }
  });
  return { count, partial: from_place !== null };
}
