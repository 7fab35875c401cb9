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
  const minutes = [...viewersByMinute(samples)].sort(([a], [b]) => a - b);
  let peak = minutes[0]!;
  let sum = 0;
  for (const minute of minutes) {
    if (minute[1] > peak[1]) peak = minute;
    sum += minute[1];
  }
  const average = Math.round(sum / minutes.length);
  return {
    sums: { peak_viewers: peak[1], avg_viewers: average, hours_watched: tenths(sum / 60) },
    viewer_markers: {
      first: minutes[0]![1],
      peak: peak[1],
      peak_at: new Date(peak[0] * 60_000).toISOString(),
      average,
      last: minutes.at(-1)![1],
    },
    follower_markers: followerMarkers(samples),
    categories: categoryTimes(samples),
  };
}

function followerMarkers(samples: readonly SampledMinute[]): FollowerMarkers | null {
  const counted = samples.flatMap(({ at, followers }) => (followers === null ? [] : [{ at, followers }]));
  if (counted.length === 0) return null;
  const [first, last] = [counted[0]!.followers, counted.at(-1)!.followers];
  const peak = counted.reduce((most, one) => (one.followers > most.followers ? one : most));
  return { first, last, gained: last - first, peak: peak.followers, peak_at: new Date(peak.at).toISOString() };
}

/** Minutes of viewers by the minute since 1970, all samples of a minute added up. */
export function viewersByMinute(samples: readonly SampledMinute[]): Map<number, number> {
  const by_minute = new Map<number, number>();
  for (const { at, viewers } of samples) {
    const minute = Math.floor(at / 60_000);
    by_minute.set(minute, (by_minute.get(minute) ?? 0) + viewers);
  }
  return by_minute;
}

/** Followers of the channels together; those of a channel before its first sample are the first ones. */
export function sessionFollowers(
  channels: readonly { platform: string; minutes: readonly SampledMinute[] }[],
): FollowerMarkers | null {
  const counted = channels
    .flatMap(({ platform, minutes }) =>
      minutes.flatMap(({ at, followers }) => (followers === null ? [] : [{ platform, at, followers }])),
    )
    .sort((a, b) => a.at - b.at);
  const newest = new Map<string, number>();
  for (const { platform, followers } of counted) if (!newest.has(platform)) newest.set(platform, followers);
  let sum = [...newest.values()].reduce((all, one) => all + one, 0);
  const sums = counted.map(({ platform, at, followers }) => {
    sum += followers - newest.get(platform)!;
    newest.set(platform, followers);
    return { at, viewers: 0, category: null, followers: sum };
  });
  return followerMarkers(sums);
}

const RETENTION_MINUTES = 10;

/** Viewers of a raid that stay: those ten minutes later minus those of the minute before, at least 0. */
export function retainedViewers(
  samples: readonly SampledMinute[],
  { at, viewers }: { at: number; viewers: number },
): number | null {
  const by_minute = viewersByMinute(samples);
  const minute = Math.floor(at / 60_000);
  const [before, after] = [by_minute.get(minute - 1), by_minute.get(minute + RETENTION_MINUTES)];
  if (before === undefined || after === undefined) return null;
  return Math.max(0, Math.min(viewers, after - before));
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
      avg_viewers: Math.round(viewers / minutes),
    }))
    .sort((a, b) => b.duration_secs - a.duration_secs || (a.category < b.category ? -1 : 1));
}
