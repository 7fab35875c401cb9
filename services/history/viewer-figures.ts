import type { FollowerMarkers, StreamFigures, StreamSums, ViewerMarkers } from '../../domain/history/session-figures';

/** Figures of one minute of one broadcast. */
export interface SampledMinute {
  /** Milliseconds since 1970. */
  at: number;
  viewers: number;
  followers: number | null;
  category: string | null;
}

/** The samples of a broadcast, oldest first. */
export interface Samples {
  minutes: SampledMinute[];
  /** In the order of their first use. */
  titles: Set<string>;
  categories: Set<string>;
  /** The last ones. */
  title: string | null;
  category: string | null;
}

export interface SampleFigures {
  sums: Pick<StreamSums, 'peak_viewers' | 'avg_viewers' | 'hours_watched'>;
  viewer_markers: ViewerMarkers | null;
  follower_markers: FollowerMarkers | null;
  categories: StreamFigures['categories'];
}

const tenths = (value: number): number => Math.round(value * 10) / 10;

/** Figures of samples, in any order; samples of several broadcasts in one minute are added up. */
export function sampleFigures(samples: readonly SampledMinute[]): SampleFigures {
  if (samples.length === 0) {
    const sums = { peak_viewers: null, avg_viewers: null, hours_watched: null };
    return { sums, viewer_markers: null, follower_markers: null, categories: [] };
  }
  const by_minute = new Map<number, number>();
  for (const { at, viewers } of samples) {
    const minute = Math.floor(at / 60_000);
    by_minute.set(minute, (by_minute.get(minute) ?? 0) + viewers);
  }
  const minutes = [...by_minute].sort(([a], [b]) => a - b);
  let peak = minutes[0]!;
  let sum = 0;
  for (const minute of minutes) {
    if (minute[1] > peak[1]) peak = minute;
    sum += minute[1];
  }
  const average = tenths(sum / minutes.length);
  const followers = samples.flatMap((one) => one.followers ?? []);
  return {
    sums: { peak_viewers: peak[1], avg_viewers: average, hours_watched: tenths(sum / 60) },
    viewer_markers: {
      first: minutes[0]![1],
      peak: peak[1],
      peak_at: new Date(peak[0] * 60_000).toISOString(),
      average,
      last: minutes.at(-1)![1],
    },
    follower_markers:
      followers.length === 0
        ? null
        : { first: followers[0]!, last: followers.at(-1)!, gained: followers.at(-1)! - followers[0]! },
    categories: categoryTimes(samples),
  };
}

function categoryTimes(samples: readonly SampledMinute[]): StreamFigures['categories'] {
  const by_category = new Map<string, { minutes: number; viewers: number }>();
  for (const { category, viewers } of samples) {
    if (category === null) continue;
    const known = by_category.get(category) ?? { minutes: 0, viewers: 0 };
    by_category.set(category, { minutes: known.minutes + 1, viewers: known.viewers + viewers });
  }
  return [...by_category]
    .map(([category, { minutes, viewers }]) => ({
      category,
      duration_secs: minutes * 60,
      avg_viewers: tenths(viewers / minutes),
    }))
    .sort((a, b) => b.duration_secs - a.duration_secs || (a.category < b.category ? -1 : 1));
}
