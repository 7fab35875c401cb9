import { z } from 'zod';
import { feature, get, permission, query, whole } from '../../app/operation';
import { activeStreams } from '../../services/chat/live-chats';

const YoutubeActiveStream = z
  .object({
    broadcast_id: z.string().describe("YouTube's id of the video"),
    live_chat_id: z.string().describe('What a message to this chat names'),
    title: z.string().nullable(),
    started_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'YoutubeActiveStream' });

/** Live chats that a message to YouTube may name. */
export const youtubeActiveStreams = query({
  name: 'youtubeActiveStreams',
  // Source: spec rulings, "chat send".
  summary: "Broadcasts of the account's YouTube channel that are on air, with the ids of their chats",
  rest: get('/v1/youtube/active-streams'),
  pages: whole(),
  guard: [feature('feature:multichat'), permission('chat:read')],
  input: z.object({}),
  output: YoutubeActiveStream,
  run: ({ caller }, { db }) => activeStreams(db, caller.account_id),
});
