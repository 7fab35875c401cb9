import { z } from 'zod';
import {
  feature,
  get,
  invalid,
  notFound,
  numbered,
  permission,
  query,
  rateLimited,
  type Refuse,
} from '../../app/operation';
import { EVENT_COLUMNS, EventRecord, eventRecord, type EventRow } from '../../domain/events/events';
import { readInstant, readRange } from '../../lib/time/instants';
import { type EventQuery, eventsPage } from './events-pages';
import { SEARCH_BUDGET_MS, searchEvents } from './events-search';

const names = z.array(z.string().min(1).max(100)).max(100);

export const EventFilterInput = z
  .object({
    types: names.nullish().describe('Exact event types'),
    platform: z.string().max(1000).nullish().describe('Vendor slug; several by commas'),
    user_id: z.string().max(200).nullish().describe("The vendor's id of the person the event is about"),
    search: z.string().max(500).nullish().describe('Part of the raw JSON or of its decoded text, whatever its case'),
    from: readInstant('from').nullish().describe('ISO 8601: not before this'),
    to: readInstant('to').nullish().describe('ISO 8601: before this'),
  })
  .meta({ id: 'EventFilterInput' });

const errors = {
  ENDS_BEFORE_IT_BEGINS: invalid('from must not be after to'),
  // Retry after the longest duration of a search.
  TOO_MANY_SEARCHES: rateLimited('Rate limit exceeded', { retry_after_seconds: SEARCH_BUDGET_MS / 1000 }),
};

/** The account's events, newest first (spec doc2 §4.3, doc1 §8). */
export const events = query({
  name: 'events',
  // Source: spec doc2 §4.3.
  summary: "The account's platform events, newest first",
  rest: get('/v1/events', { mapInput: fromQueryString }),
  // Counters locate a page, however deep.
  pages: numbered('PaginatedEventResult', { pages: 1_000_000_000 }),
  graphql: { argument: 'filter', renamed: { eventType: 'type' } },
  guard: [feature('feature:events'), permission('events:read')],
  input: EventFilterInput,
  output: EventRecord,
  errors,
  async run({ input, caller, context, page, refuse }, { db }) {
    const { limit, offset, max_bytes } = page;
    const filter = { ...eventQuery(input, caller.account_id, refuse), limit, offset, max_bytes };
    const search = input.search ?? '';
    const found =
      search === ''
        ? await eventsPage(db, filter)
        : await searchEvents(db, filter, search, SEARCH_BUDGET_MS, context.onGone);
    const { total, cut } = found;
    return { items: found.rows.map(eventRecord), total, cut, ...(found.partial && { partial: true }) };
  },
});

/** An event of the account (spec doc2 §4.4). */
export const event = query({
  name: 'event',
  // Source: spec doc2 §4.4.
  summary: 'One platform event of the account',
  rest: get('/v1/events/{id}'),
  graphql: { renamed: { eventType: 'type' } },
  guard: [feature('feature:events'), permission('events:read')],
  input: z.object({ id: z.uuid() }),
  output: EventRecord,
  errors: { EVENT_NOT_FOUND: notFound('Event not found') },
  async run({ input, caller, refuse }, { db }) {
    const [row] = await db.query<EventRow>(
      `select ${EVENT_COLUMNS} from platform_event_logs where id = $1 and account_id = $2`,
      [input.id, caller.account_id],
      'event-by-id',
    );
    if (!row) throw refuse('EVENT_NOT_FOUND');
    return eventRecord(row);
  },
});

/** Accepts GraphQL's `userId` on REST too, and a repeated `platform` like one with commas. */
export function fromQueryString({ userId, ...query }: Record<string, unknown>): Record<string, unknown> {
  return {
    ...query,
    ...(userId === undefined ? {} : { user_id: query.user_id ?? userId }),
    ...(Array.isArray(query.platform) ? { platform: query.platform.join(',') } : {}),
  };
}

export function eventQuery(
  input: Omit<z.output<typeof EventFilterInput>, 'search'>,
  account_id: string,
  refuse: Refuse<Pick<typeof errors, 'ENDS_BEFORE_IT_BEGINS'>>,
): Omit<EventQuery, 'limit' | 'offset' | 'max_bytes'> {
  const platforms = (input.platform ?? '')
    .split(',')
    .map((slug) => slug.trim())
    .filter((slug) => slug !== '');
  const types = input.types ?? [];
  const { from, to, reversed } = readRange(input);
  if (reversed) throw refuse('ENDS_BEFORE_IT_BEGINS');
  return {
    account_id,
    types: types.length > 0 ? [...new Set(types)] : null,
    platforms: platforms.length > 0 ? [...new Set(platforms)] : null,
    user_id: input.user_id ? input.user_id : null,
    from,
    to,
  };
}
