import { z } from 'zod';
import { feature, get, invalid, permission, query, timeline } from '../../app/operation';
import { ModerationLogEntry } from '../../domain/chat/chat-history';
import { PLATFORMS } from '../../domain/common/vendors';
import { readInstant, readRange } from '../../lib/time/instants';
import { moderationEntries } from '../../views/chat/moderation-log';

const ChatModerationLogFilter = z
  .object({
    platform: z.enum(PLATFORMS).nullish(),
    action: z.string().min(1).max(100).nullish().describe("Exactly this act, in the platform's own word"),
    user_id: z.string().min(1).max(200).nullish().describe("The platform's id of the target"),
    moderator_id: z.string().min(1).max(200).nullish().describe("The platform's id of the moderator"),
    from: readInstant('from').nullish().describe('ISO 8601: not before this'),
    to: readInstant('to').nullish().describe('ISO 8601: before this'),
  })
  .meta({ id: 'ChatModerationLogFilterInput' });

/** Acts of the moderators in the account's chats, newest first. */
export const chatModerationLog = query({
  name: 'chatModerationLog',
  // Source: spec extra facts §11.
  summary: "What moderators did in the account's chats, newest first",
  rest: get('/v1/chat/moderation-log'),
  pages: timeline(z.int(), 'ChatModerationLogPage'),
  graphql: { argument: 'filter' },
  guard: [feature('feature:multichat'), permission('chat:read')],
  input: ChatModerationLogFilter,
  output: ModerationLogEntry,
  errors: { ENDS_BEFORE_IT_BEGINS: invalid('from must not be after to') },
  async run({ input, caller, page, refuse }, { db }) {
    const { from, to, reversed } = readRange(input);
    if (reversed) throw refuse('ENDS_BEFORE_IT_BEGINS');
    const filter = {
      account_id: caller.account_id,
      platforms: input.platform ? [input.platform] : null,
      actions: input.action ? [input.action] : null,
      target_user_id: input.user_id ?? null,
      moderator_id: input.moderator_id ?? null,
      from,
      to,
    };
    const { way, key } = page.from ?? { way: 'older' as const, key: null };
    const found = await moderationEntries(db, filter, { way, from_place: key, limit: page.limit + 1 });
    const rows = found.slice(0, page.limit);
    const further = found.length > page.limit ? rows.at(-1)!.place : null;
    if (way === 'newer') rows.reverse();
    const items = rows.map(({ entry }) => entry);
    const newest = rows[0]?.place ?? key;
    if (way === 'older') return { items, older: further, newer: newest };
    return { items, older: rows.at(-1)?.place ?? key, newer: newest };
  },
});
