import { z } from 'zod';
import type { SessionFigures, StreamSums } from './session-figures';

const dateTime = z.string().meta({ format: 'date-time' });
const count = z.int().min(0);

export const SESSION_TYPES = ['single', 'multi'] as const;

/** Figures of a list item and of each stream of a report; null where no platform reports the figure. */
export const ShownFigures = z.object({
  peak_viewers: count.nullable(),
  avg_viewers: count.nullable(),
  hours_watched: z.number().nullable(),
  total_messages: count.nullable(),
  unique_chatters: count.nullable(),
  new_followers: count.nullable(),
  new_paid_subs: count.nullable(),
  gifted_subs: count.nullable(),
  emote_count: count.nullable(),
  gif_count: count.nullable(),
});
export type ShownFigures = z.output<typeof ShownFigures>;

/** A session as the list and the channel `history:` show it. Source: spec doc2 §2.14. */
export const SessionSummary = z
  .object({
    id: z.uuid(),
    status: z.enum(['live', 'finalized']).describe('The figures of a live session change'),
    session_type: z.enum(SESSION_TYPES).describe('`multi`: on several platforms'),
    title: z.string().nullable().describe('The first title'),
    platforms: z.array(z.string()),
    categories: z.array(z.string()),
    started_at: dateTime,
    ended_at: dateTime.nullable(),
    duration_secs: count.describe('Gaps between streams included'),
    ...ShownFigures.shape,
    followers_per_hour: z.number().nullable(),
  })
  .meta({ id: 'StreamSessionSummary' });
export type SessionSummary = z.output<typeof SessionSummary>;

export interface SummarisedSession {
  id: string;
  is_live: boolean;
  title: string | null;
  platforms: readonly string[];
  categories: readonly string[];
  started_at: string;
  ended_at: string | null;
  /** Null before the first count. */
  figures: SessionFigures | null;
}

const SHOWN = Object.keys(ShownFigures.shape) as (keyof ShownFigures)[];
const NOTHING = Object.fromEntries(SHOWN.map((name) => [name, null])) as ShownFigures;
const NO_CHAT = { total_messages: 0, unique_chatters: 0, emote_count: 0, gif_count: 0 };

export const shownFigures = (figures: StreamSums): ShownFigures => ({
  ...(Object.fromEntries(SHOWN.map((name) => [name, figures[name]])) as ShownFigures),
  avg_viewers: figures.avg_viewers === null ? null : Math.round(figures.avg_viewers),
});

export function summaryOf({ figures, is_live, ...session }: SummarisedSession): SessionSummary {
  const { id, platforms, categories, started_at, ended_at } = session;
  const shown = figures === null ? { ...NOTHING, ...NO_CHAT } : shownFigures(figures);
  const duration_secs = figures?.duration_secs ?? 0;
  const hours = duration_secs / 3600;
  return {
    id,
    status: is_live ? 'live' : 'finalized',
    session_type: platforms.length > 1 ? 'multi' : 'single',
    title: figures?.title ?? session.title,
    platforms: [...platforms],
    categories: [...categories],
    started_at,
    ended_at,
    duration_secs,
    ...shown,
    followers_per_hour:
      shown.new_followers === null || hours === 0 ? null : Math.round((shown.new_followers / hours) * 10) / 10,
  };
}

/** The list item of a counted session, made of its figures alone. */
export function countedSummary(id: string, figures: SessionFigures, ended_at: string | null): SessionSummary {
  const { streams, title, categories } = figures;
  const starts = streams.map(({ started_at }) => started_at).sort();
  return summaryOf({
    ...{ id, title, categories, figures, ended_at },
    is_live: ended_at === null,
    platforms: [...new Set(streams.map(({ platform }) => platform))],
    started_at: starts[0] ?? new Date(0).toISOString(),
  });
}
