import { z } from 'zod';
import { adminPermission, command, conflict, del, notFound, patch, post, put } from '../../app/operation';
import { PLATFORMS } from '../../domain/common/vendors';
import { crawler, crawlerStream, MAX_WATCHED, plainChannel } from '../../domain/history/crawler';
import { channelOfHandle } from '../../services/history/channel-handles';
import { platformOf, UNSUPPORTED } from '../../views/history/supported-platforms';
import { CrawlerScope, WatchedChannel } from '../../views/history/crawler';

const platform = z.string().min(1).max(50);
const channel = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .regex(/^\s*@?[^\s@\p{Cc}\p{Cs}][^\p{Cc}\p{Cs}]*$/u, 'must be a handle')
  .describe('The handle in its address, whatever its case');

export const updateCrawlerScope = command({
  name: 'updateCrawlerScope',
  summary: 'Enables the crawler, or changes its platforms; absent members stay',
  rest: patch('/v1/crawler/scope'),
  guard: [adminPermission('crawler:scope-edit')],
  input: z.object({ enabled: z.boolean().nullish(), platforms: z.array(platform).max(PLATFORMS.length).nullish() }),
  output: CrawlerScope,
  errors: UNSUPPORTED,
  async run({ input, act, refuse }) {
    const { state } = await act(crawler, crawlerStream, {
      type: 'crawler:change_scope',
      enabled: input.enabled ?? undefined,
      platforms: input.platforms?.map((name) => platformOf(name, refuse)),
    });
    return { enabled: state.scope.enabled, platforms: [...state.scope.platforms] };
  },
});

/** Calls no vendor: the crawler finds the channel at its next look. */
export const addToCrawlerWatchlist = command({
  name: 'addToCrawlerWatchlist',
  summary: 'Adds a channel to those that the crawler watches',
  rest: post('/v1/watchlist', { status: 201 }),
  guard: [adminPermission('crawler:watchlist-create')],
  input: z.object({ platform, channel }),
  output: WatchedChannel,
  errors: {
    ...UNSUPPORTED,
    ALREADY_WATCHED: conflict('The channel is already on the watchlist'),
    TOO_MANY_WATCHED: conflict(`The watchlist has at most ${MAX_WATCHED} channels`),
  },
  async run({ input, act, context, newId, refuse }) {
    const id = newId('watchlist');
    const of = { platform: platformOf(input.platform, refuse), channel: plainChannel(input.channel) };
    const { events } = await act(crawler, crawlerStream, { type: 'crawler:watch', entry_id: id, ...of });
    const added = events.find((event) => event.type === 'crawler:channel_watched');
    return { id, ...of, added_at: added?.changed_at ?? new Date(context.now).toISOString() };
  },
});

export const removeFromCrawlerWatchlist = command({
  name: 'removeFromCrawlerWatchlist',
  summary: 'Removes a channel from those that the crawler watches',
  rest: del('/v1/watchlist/{id}'),
  guard: [adminPermission('crawler:watchlist-delete')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'RemovedFromWatchlist' }),
  errors: { NOT_WATCHED: notFound('Watchlist entry not found') },
  async run({ input: { id }, act }) {
    await act(crawler, crawlerStream, { type: 'crawler:unwatch', entry_id: id.toLowerCase() });
    return { success: true };
  },
});

/** Closes the public pages of a channel for its owner, who may have no account here. */
export const setExternalOptOut = command({
  name: 'setExternalOptOut',
  summary: "Closes or opens a channel's public statistics on behalf of its owner",
  rest: put('/v1/crawler/opt-outs/{platform}/{channel}'),
  guard: [adminPermission('crawler:scope-edit')],
  input: z.object({ platform, channel, opted_out: z.boolean() }),
  output: z
    .object({ platform: z.string(), channel: z.string(), opted_out: z.boolean() })
    .meta({ id: 'CrawlerExternalOptOut' }),
  errors: UNSUPPORTED,
  async run({ input, act, refuse }, services) {
    const of_platform = platformOf(input.platform, refuse);
    const handle = plainChannel(input.channel);
    // Pages of known channels are closed by their id, which a new handle does not change.
    const known = await channelOfHandle(services, of_platform, handle);
    // An opt-out from before the channel was known names its handle.
    const channels = known === null ? [handle] : input.opted_out ? [known] : [known, handle];
    await act(crawler, crawlerStream, {
      type: 'crawler:set_opt_out',
      platform: of_platform,
      channels,
      opted_out: input.opted_out,
    });
    return { platform: of_platform, channel: handle, opted_out: input.opted_out };
  },
});
