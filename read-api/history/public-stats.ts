import { z } from 'zod';
import {
  feature,
  get,
  notFound,
  offset,
  permission,
  publicAccess,
  query,
  type Refuse,
  whole,
} from '../../app/operation';
import type { Services } from '../../app/services';
import { readChannelName } from '../../services/connections/channel-names';
import { channelOfHandle, handlesOf } from '../../services/history/channel-handles';
import {
  BROWSE_SORTS,
  BrowsedChannel,
  browsedChannels,
  EMOTE_SORTS,
  emotesOf,
  GAME_SORTS,
  gamesOf,
  PublicEmote,
  PublicGame,
} from '../../views/history/public-directories';
import {
  crawledChannelOf,
  crawledStreamOf,
  crawledTrendsOf,
  profileChangesOf,
} from '../../views/history/crawled-channels';
import { platformOf, UNSUPPORTED } from '../../views/history/supported-platforms';
import {
  ChannelPublicness,
  PublicChannel,
  publicChannelOf,
  publicnessOf,
  PublicStream,
  publicStreamOf,
  StreamChange,
  streamChangesOf,
  trendsOf,
} from '../../views/history/public-stats';

/** Pages that caches may hold; an opt-out counts there after this. */
const CACHED = { cache_seconds: 60 };
/** Everybody, while the kill-switch is on. Source: spec doc2 §4.2 "Public statistics". */
const PUBLIC = [publicAccess, feature('system:public_stats')] as const;
const platform = z.string().min(1).max(50);
const channel = z.string().min(1).max(200).describe('The login or handle in its address, whatever its case');
const CHANNEL = z.object({ platform, channel });
const broadcast_id = z.string().min(1).max(500);
const errors = { ...UNSUPPORTED, NO_CHANNEL: notFound('Channel not found') };
const STREAM_NOT_FOUND = { ...UNSUPPORTED, STREAM_NOT_FOUND: notFound('Stream not found') };

const HISTORY_PAGES = { items: 50, most: 200, rest: 'items' } as const;

/** Publicness of the account's own channels. */
export const channelPublicSettings = query({
  name: 'channelPublicSettings',
  summary: "Which of the account's channels have public statistics",
  rest: get('/v1/public-stats/channels'),
  pages: whole(),
  guard: [feature('feature:public_stats_page'), permission('public-stats:read')],
  input: z.object({}),
  output: ChannelPublicness,
  async run({ caller }, services) {
    const rows = await publicnessOf(services.db, caller.account_id);
    return Promise.all(rows.map(async (row) => ({ ...row, channel_name: await readChannelName(services, row) })));
  },
});

/** A public channel. */
export const publicChannelStats = query({
  name: 'publicChannelStats',
  summary: 'Public statistics of a channel, and its latest streams',
  rest: get('/v1/public-stats/channels/{platform}/{channel}'),
  ...CACHED,
  guard: PUBLIC,
  input: CHANNEL,
  output: PublicChannel,
  errors,
  async run({ input, refuse }, services) {
    const { found, ...of } = await publicChannel(services, input, refuse);
    return { ...found, channel_display_name: (await readChannelName(services, of)) ?? input.channel };
  },
});

/** @throws DomainError NO_CHANNEL for an unknown or closed channel, and for one without streams */
async function publicChannel(
  services: Pick<Services, 'db' | 'hashes'>,
  input: { platform: string; channel: string },
  refuse: Refuse<typeof errors>,
) {
  const of_platform = platformOf(input.platform, refuse);
  const platform_channel_id = await channelOfHandle(services, of_platform, input.channel);
  const of = { platform: of_platform, platform_channel_id: platform_channel_id ?? '' };
  const found =
    platform_channel_id === null
      ? undefined
      : ((await publicChannelOf(services.db, of)) ?? (await crawledChannelOf(services.db, of)));
  if (found === undefined) throw refuse('NO_CHANNEL');
  return { ...of, found };
}

const ProfileChange = z
  .object({
    change_type: z.enum(['bio', 'link', 'team']),
    old_value: z.unknown().meta({ graphql: 'JSON' }),
    new_value: z.unknown().meta({ graphql: 'JSON' }),
    changed_at: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'PublicProfileChange' });

/** Changes of a channel's profile, which the crawler has found. */
export const publicChannelProfileHistory = query({
  name: 'publicChannelProfileHistory',
  summary: "Changes of a channel's profile, newest first",
  rest: get('/v1/public-stats/channels/{platform}/{channel}/profile-history'),
  pages: offset('PublicProfileChangePage', HISTORY_PAGES),
  ...CACHED,
  guard: PUBLIC,
  input: CHANNEL,
  output: ProfileChange,
  errors,
  async run({ input, page, refuse }, services) {
    return profileChangesOf(services.db, await publicChannel(services, input, refuse), page);
  },
});

const Panel = z
  .object({
    panel_id: z.string(),
    title: z.string().nullable(),
    description: z.string().nullable(),
    image_url: z.string().nullable(),
    link_url: z.string().nullable(),
    first_seen_at: z.string().meta({ format: 'date-time' }),
    last_seen_at: z.string().meta({ format: 'date-time' }),
    status: z.enum(['active', 'removed']),
    removed_at: z.string().meta({ format: 'date-time' }).nullable(),
    images: z.array(
      z
        .object({ image_url: z.string(), first_seen_at: z.string(), last_seen_at: z.string() })
        .meta({ id: 'PublicPanelImage' }),
    ),
  })
  .meta({ id: 'PublicPanel' });

/** Panels of a channel that are marked as advertisements; no vendor API lists panels. */
export const publicChannelPanelHistory = query({
  name: 'publicChannelPanelHistory',
  summary: "A channel's panels that are marked as advertisements",
  rest: get('/v1/public-stats/channels/{platform}/{channel}/panel-history'),
  pages: whole(),
  ...CACHED,
  guard: PUBLIC,
  input: CHANNEL,
  output: Panel,
  errors,
  async run({ input, refuse }, services) {
    await publicChannel(services, input, refuse);
    return [];
  },
});

const RANGES = ['DAYS_30', 'DAYS_90', 'DAYS_180', 'DAYS_365'] as const;
const Trends = z
  .object({
    follower_series: z.array(
      z.object({ date: z.string().describe('YYYY-MM-DD, UTC'), follower_count: z.int() }).meta({ id: 'FollowerPoint' }),
    ),
    avg_viewer_series: z.array(
      z.object({ date: z.string().describe('YYYY-MM-DD, UTC'), avg_viewers: z.number() }).meta({ id: 'ViewerDay' }),
    ),
  })
  .meta({ id: 'PublicChannelTrends' });

/** Followers and viewers of a channel by day. */
export const publicChannelTrends = query({
  name: 'publicChannelTrends',
  summary: 'Followers and average viewers of a channel by day',
  rest: get('/v1/public-stats/channels/{platform}/{channel}/trends'),
  ...CACHED,
  guard: PUBLIC,
  input: CHANNEL.extend({ range: z.enum(RANGES) }),
  output: Trends,
  errors,
  async run({ input, refuse }, services) {
    const of = await publicChannel(services, input, refuse);
    const trends = of.found.source === 'external_crawler' ? crawledTrendsOf : trendsOf;
    const days = await trends(services.db, of, Number(input.range.slice('DAYS_'.length)));
    return {
      follower_series: days.flatMap(({ date, follower_count: count }) =>
        count === null ? [] : [{ date, follower_count: count }],
      ),
      avg_viewer_series: days.flatMap(({ date, avg_viewers: viewers }) =>
        viewers === null ? [] : [{ date, avg_viewers: viewers }],
      ),
    };
  },
});

/** A public stream, finished or live. */
export const publicStreamStats = query({
  name: 'publicStreamStats',
  summary: 'Public statistics of a stream',
  rest: get('/v1/public-stats/streams/{platform}/{broadcast_id}'),
  ...CACHED,
  guard: PUBLIC,
  input: z.object({ platform, broadcast_id }),
  output: PublicStream,
  errors: STREAM_NOT_FOUND,
  async run({ input, refuse }, { db }) {
    const of_platform = platformOf(input.platform, refuse);
    const stream =
      (await publicStreamOf(db, of_platform, input.broadcast_id)) ??
      (await crawledStreamOf(db, of_platform, input.broadcast_id));
    if (stream === undefined) throw refuse('STREAM_NOT_FOUND');
    return stream;
  },
});

/** Titles and categories that a stream has had. */
export const publicStreamMetadataHistory = query({
  name: 'publicStreamMetadataHistory',
  summary: 'Changes of the title and the category of a stream, newest first',
  rest: get('/v1/public-stats/streams/{platform}/{broadcast_id}/metadata-history'),
  pages: offset('PublicStreamChangePage', HISTORY_PAGES),
  ...CACHED,
  guard: PUBLIC,
  input: z.object({ platform, broadcast_id }),
  output: StreamChange,
  errors: STREAM_NOT_FOUND,
  async run({ input, page, refuse }, { db }) {
    const changes = await streamChangesOf(db, { ...input, platform: platformOf(input.platform, refuse) }, page);
    if (changes === undefined) throw refuse('STREAM_NOT_FOUND');
    return changes;
  },
});

/** Input of a directory; the first of `sorts` is the default. */
const directory = <const Sorts extends readonly [string, ...string[]]>(sorts: Sorts) =>
  z.object({
    platform: platform.nullish(),
    sort_by: z.enum(sorts).nullish().describe(`Default \`${sorts[0]}\``),
    sort_dir: z.enum(['asc', 'desc']).nullish().describe('Default `desc`; missing figures come last'),
  });
function directoryOf<Sort extends string>(
  input: {
    platform?: string | null | undefined;
    sort_by?: Sort | null | undefined;
    sort_dir?: 'asc' | 'desc' | null | undefined;
  },
  first: Sort,
  refuse: Refuse<typeof UNSUPPORTED>,
) {
  return {
    platform: input.platform ? platformOf(input.platform, refuse) : null,
    sort_by: input.sort_by ?? first,
    sort_dir: input.sort_dir ?? 'desc',
  };
}

/** The directory of channels. */
export const publicChannelBrowse = query({
  name: 'publicChannelBrowse',
  summary: 'Channels with public statistics that streamed in the last 30 days',
  rest: get('/v1/public-stats/browse'),
  pages: offset('PublicBrowsedChannelPage'),
  ...CACHED,
  guard: PUBLIC,
  input: directory(BROWSE_SORTS),
  output: BrowsedChannel,
  errors: UNSUPPORTED,
  async run({ input, page, refuse }, services) {
    const { items, total } = await browsedChannels(services.db, directoryOf(input, BROWSE_SORTS[0], refuse), page);
    const handles = await handlesOf(services, items);
    const named = await Promise.all(
      items.map(async ({ platform_channel_id, ...item }, at) => ({
        ...item,
        channel_handle: handles[at],
        channel_display_name: await readChannelName(services, { platform: item.platform, platform_channel_id }),
      })),
    );
    return {
      items: named.flatMap(({ channel_handle, ...item }) => (channel_handle ? [{ ...item, channel_handle }] : [])),
      total,
    };
  },
});

/** The directory of games. */
export const publicGames = query({
  name: 'publicGames',
  summary: 'Categories of the last 30 days',
  rest: get('/v1/public-stats/games'),
  per_minute: 30,
  pages: offset('PublicGamePage'),
  ...CACHED,
  guard: PUBLIC,
  input: directory(GAME_SORTS),
  output: PublicGame,
  errors: UNSUPPORTED,
  run: async ({ input, page, refuse }, { db }) => gamesOf(db, directoryOf(input, GAME_SORTS[0], refuse), page),
});

/** The directory of emotes. */
export const publicEmotes = query({
  name: 'publicEmotes',
  summary: 'Emotes of the last 30 days',
  rest: get('/v1/public-stats/emotes'),
  per_minute: 30,
  pages: offset('PublicEmotePage'),
  ...CACHED,
  guard: PUBLIC,
  input: directory(EMOTE_SORTS),
  output: PublicEmote,
  errors: UNSUPPORTED,
  run: async ({ input, page, refuse }, { db }) => emotesOf(db, directoryOf(input, EMOTE_SORTS[0], refuse), page),
});
