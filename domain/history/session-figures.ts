import { z } from 'zod';
import type { Json } from '../../lib/json/json';
import { memberAt, parsedJson } from '../../lib/json/paths';
import { PLATFORMS } from '../common/vendors';

/** Figures of streams: shapes of reports, and what an event counts for. Source: spec doc2 §2.14. */

const count = z.int().min(0);
const instant = z.iso.datetime();
const untold = 'null where the platform does not report them';

/** Sums of figures, of one stream or of a session. */
export const StreamSums = z.object({
  peak_viewers: count.nullable().describe(`Null without samples`),
  avg_viewers: z.number().nullable().describe('Of the minutes with a sample, rounded'),
  hours_watched: z.number().nullable(),
  total_messages: count,
  unique_chatters: count,
  new_followers: count.nullable().describe(`Follow events; ${untold}`),
  new_paid_subs: count.nullable().describe('First subscriptions, Prime included, and upgrades from Prime or gift'),
  resubs: count.nullable(),
  sub_upgrades: count.nullable().describe('From a gift, from Prime, or to a higher level'),
  gifted_subs: count.nullable().describe('Recipients of gifts'),
  bits: count.nullable(),
  raids: count.nullable(),
  raid_viewers: count.nullable(),
  emote_count: count,
  gif_count: count,
});
export type StreamSums = z.output<typeof StreamSums>;

const ViewerMarkers = z
  .object({ first: count, peak: count, peak_at: instant, average: z.number(), last: count })
  .meta({ id: 'ViewerMarkers' });
export type ViewerMarkers = z.output<typeof ViewerMarkers>;
const FollowerMarkers = z
  .object({ first: count, last: count, gained: z.int(), peak: count, peak_at: instant.nullable() })
  .meta({ id: 'FollowerMarkers' });
export type FollowerMarkers = z.output<typeof FollowerMarkers>;

const CategoryTime = z
  .object({
    category: z.string(),
    duration_secs: count,
    avg_viewers: z.number(),
  })
  .meta({ id: 'StreamCategory' });

const EmoteCount = z
  .object({ id: z.string(), name: z.string(), url: z.string().nullable(), provider: z.string(), count })
  .meta({ id: 'StreamEmote' });
const GifCount = z
  .object({ id: z.string(), url: z.string().nullable(), provider: z.string(), alt: z.string(), count })
  .meta({ id: 'StreamGif' });

/** A chatter by the key of the person; reading a report adds the name. */
const ChatterCount = z.object({ platform: z.enum(PLATFORMS), person_key: z.uuid(), message_count: count });

/** A raid that a stream received. */
export const Raid = z
  .object({
    platform: z.enum(PLATFORMS),
    raided_at: instant,
    viewers: count,
    retained_viewers: count
      .nullable()
      .describe('Viewers ten minutes later minus those of the minute before; null without both samples'),
  })
  .meta({ id: 'StreamRaid' });
export type Raid = z.output<typeof Raid>;

/** A broadcast within a session, with its figures; bridged broadcasts of a channel are one, under the first id. */
export const StreamFigures = z
  .object({
    platform: z.enum(PLATFORMS),
    platform_channel_id: z.string(),
    broadcast_id: z.string(),
    title: z.string().nullable(),
    category: z.string().nullable(),
    started_at: instant,
    ended_at: instant.nullable(),
    duration_secs: count,
    ...StreamSums.shape,
    viewer_markers: ViewerMarkers.nullable(),
    follower_markers: FollowerMarkers.nullable(),
    categories: z.array(CategoryTime).describe('Longest first'),
    message_interval_secs: z.int().positive().describe('Length of the intervals of `message_counts`'),
    message_counts: z.array(count).describe('Messages in each interval since the start'),
  })
  .meta({ id: 'StreamFigures' });
export type StreamFigures = z.output<typeof StreamFigures>;

const tops = {
  top_chatters: z.array(ChatterCount),
  top_emotes: z.array(EmoteCount),
  top_gifs: z.array(GifCount),
};

/** The figures of a broadcast as they are stored, with its own top lists: public pages show broadcasts. */
const StoredStream = z.object({ ...StreamFigures.shape, ...tops, broadcast_ids: z.array(z.string()) });
export type StoredStream = z.output<typeof StoredStream>;

/** Figures of a session as they are stored: nothing in them names a person. */
export const SessionFigures = z.object({
  title: z.string().nullable(),
  titles: z.array(z.string()),
  categories: z.array(z.string()),
  duration_secs: count,
  ...StreamSums.shape,
  streams: z.array(StoredStream),
  ...tops,
  viewer_markers: ViewerMarkers.nullable(),
  follower_markers: FollowerMarkers.nullable(),
  received_raids: z.array(Raid),
  /** Of earlier releases; 0 since figures outlive their rows. */
  rows_counted: count,
});
export type SessionFigures = z.output<typeof SessionFigures>;

/** Rows of the top lists. */
export const TOP_ROWS = 100;
/** Of one broadcast. */
export const STREAM_TOP_ROWS = 20;

/** Platforms that report a figure; elsewhere it is null. */
const REPORTED: Readonly<Record<EventFigure, readonly string[]>> = {
  new_followers: ['twitch', 'kick', 'trovo'],
  new_paid_subs: PLATFORMS,
  resubs: ['twitch', 'kick', 'youtube'],
  sub_upgrades: ['twitch', 'youtube'],
  gifted_subs: PLATFORMS,
  bits: ['twitch'],
  raids: ['twitch', 'trovo'],
  raid_viewers: ['twitch', 'trovo'],
};
export type EventFigure =
  'new_followers' | 'new_paid_subs' | 'resubs' | 'sub_upgrades' | 'gifted_subs' | 'bits' | 'raids' | 'raid_viewers';
export type EventCounts = Record<EventFigure, number | null>;
export const EVENT_FIGURES = Object.keys(REPORTED) as EventFigure[];

/** Figures before the first event: 0 where the platform reports them, else null. */
export const noCounts = (platform: string): EventCounts =>
  Object.fromEntries(EVENT_FIGURES.map((name) => [name, REPORTED[name].includes(platform) ? 0 : null])) as EventCounts;

const isObject = (value: Json | undefined): boolean => typeof value === 'object' && value !== null;
type Counted = Partial<Record<EventFigure, number>>;
type Value = Json;
const whole = (value: Value | undefined): number => {
  const found = typeof value === 'string' ? Number(value) : value;
  return typeof found === 'number' && Number.isSafeInteger(found) && found > 0 ? found : 0;
};

interface GiftBomb {
  id: string;
  total: number;
  singles: number;
}
/** Total and single gifts of each gift bomb of Twitch, by `community_gift_id`. */
export type GiftBombs = Map<string, { total: number; singles: number }>;

/** Recipients of gift bombs: of a bomb, the larger of its total and its single gifts. */
export const bombRecipients = (bombs: GiftBombs): number =>
  [...bombs.values()].reduce((sum, { total, singles }) => sum + Math.max(total, singles), 0);

/** Reads a gift that is part of a bomb; null of any other event. */
function bombOf(type: string, raw: Value): GiftBomb | null {
  if (type !== 'twitch:gift') return null;
  const whole_bomb = memberAt(raw, ['community_sub_gift', 'id']);
  if (typeof whole_bomb === 'string')
    return { id: whole_bomb, total: whole(memberAt(raw, ['community_sub_gift', 'total'])), singles: 0 };
  const id = memberAt(raw, ['sub_gift', 'community_gift_id']);
  return typeof id === 'string' ? { id, total: 0, singles: 1 } : null;
}

/** Figures that an event of each type counts for; gift bombs are counted apart. */
const COUNTED: Readonly<Record<string, (raw: Value) => Counted>> = {
  'twitch:follower': () => ({ new_followers: 1 }),
  'twitch:subscribe': () => ({ new_paid_subs: 1 }),
  'twitch:resub': () => ({ resubs: 1 }),
  'twitch:gift_upgrade': () => ({ sub_upgrades: 1, new_paid_subs: 1 }),
  'twitch:prime_upgrade': () => ({ sub_upgrades: 1, new_paid_subs: 1 }),
  'twitch:gift': (raw) => {
    const many = memberAt(raw, ['community_sub_gift', 'total']);
    if (many !== undefined && many !== null) return { gifted_subs: whole(many) };
    return { gifted_subs: isObject(memberAt(raw, ['sub_gift'])) ? 1 : 0 };
  },
  'twitch:cheer': (raw) => ({ bits: whole(memberAt(raw, ['bits'])) }),
  'twitch:raid': (raw) => ({ raids: 1, raid_viewers: whole(memberAt(raw, ['viewers'])) }),
  'kick:follower': () => ({ new_followers: 1 }),
  'kick:subscribe': (raw) => {
    const months = whole(memberAt(raw, ['duration']));
    return { new_paid_subs: Number(months === 1), resubs: Number(months > 1) };
  },
  'kick:gift': (raw) => {
    const giftees = memberAt(raw, ['giftees']);
    return { gifted_subs: Array.isArray(giftees) ? giftees.length : 0 };
  },
  'youtube:member': (raw) => {
    if (memberAt(raw, ['snippet', 'memberMilestoneChatDetails'])) return { resubs: 1 };
    const is_upgrade = memberAt(raw, ['snippet', 'newSponsorDetails', 'isUpgrade']) === true;
    return is_upgrade ? { sub_upgrades: 1 } : { new_paid_subs: 1 };
  },
  'youtube:gift_membership': (raw) => ({
    gifted_subs: whole(memberAt(raw, ['snippet', 'membershipGiftingDetails', 'giftMembershipsCount'])),
  }),
  'trovo:follower': () => ({ new_followers: 1 }),
  'trovo:subscribe': trovoSubscription,
  'trovo:subscriber': trovoSubscription,
  'trovo:raid': (raw) => {
    const content = memberAt(raw, ['content']);
    const viewers = typeof content === 'string' ? memberAt(parsedJson(content), ['raiderNum']) : undefined;
    return { raids: 1, raid_viewers: whole(viewers) };
  },
};

/** 5005 gives as many subscriptions as its content has, 5006 one. Source: vendors, Trovo. */
function trovoSubscription(raw: Value): Counted {
  const type = memberAt(raw, ['type']);
  if (type === 5005) return { gifted_subs: whole(memberAt(raw, ['content'])) || 1 };
  return type === 5006 ? { gifted_subs: 1 } : { new_paid_subs: 1 };
}

/** Types of events that count. */
export const COUNTED_TYPES: readonly string[] = Object.keys(COUNTED);

/** Figures of an event; nothing in them names a person. */
export interface ReadCounts {
  figures: Counted;
  bomb: GiftBomb | null;
}

/** Reads the figures of an event. `raw` is JSON text; a missing member counts 0. */
export function readCounts(type: string, raw: string): ReadCounts {
  const value = parsedJson(raw);
  // About another room of a shared chat.
  const notice = memberAt(value, ['notice_type']);
  if (typeof notice === 'string' && notice.startsWith('shared_chat_')) return { figures: {}, bomb: null };
  const bomb = bombOf(type, value);
  return { figures: bomb === null ? (COUNTED[type]?.(value) ?? {}) : {}, bomb };
}

/** Adds an event to the figures of its stream. */
export function addCounts(counts: EventCounts, bombs: GiftBombs, { figures, bomb }: ReadCounts): void {
  if (bomb !== null) {
    const known = bombs.get(bomb.id) ?? { total: 0, singles: 0 };
    bombs.set(bomb.id, { total: Math.max(known.total, bomb.total), singles: known.singles + bomb.singles });
  }
  for (const [name, amount] of Object.entries(figures) as [EventFigure, number][]) {
    counts[name] = (counts[name] ?? 0) + amount;
  }
}

/** Sum of figures of several streams; null where none has the figure. */
export function addedUp(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}

/** Well-known bots by `<platform>:<user id>`. */
export const KNOWN_BOT_IDS: readonly string[] = [
  ...['twitch:19264788', 'twitch:100135110', 'twitch:105166207', 'twitch:1564983', 'twitch:237719657'],
  ...['twitch:52268235', 'twitch:216527497', 'twitch:402337290', 'twitch:519435394'],
];
/** Logins of well-known bots, whose messages count nowhere. */
export const KNOWN_BOTS: readonly string[] = [
  ...['nightbot', 'streamelements', 'streamlabs', 'moobot', 'fossabot', 'wizebot', 'botisimo', 'soundalerts'],
  ...['sery_bot', 'botrixoficial', 'botrix', 'kickbot', 'streamstickers', 'pokemoncommunitygame', 'commanderroot'],
];
