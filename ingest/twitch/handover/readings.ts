import { z } from 'zod';
import type { Json } from '../../../lib/json/json';
import { isBefore } from '../../runtime/parse/times';

const Since = z.record(z.string(), z.string());

/** Subscriptions of one holder of a channel. */
export const Reading = z.object({
  /** {@link Link.holding}. */
  holding: z.number(),
  /** Creation time of each subscription by its name, and by its type, by Twitch's clock. */
  since: Since,
  /** Time of the last message of a session that was never completely open; absent for any other session. */
  until: z.string().optional(),
});
export type Reading = z.output<typeof Reading>;

/** Part of the kept state about its holders. Earlier releases store only `since`. */
export const Holders = z.object({
  since: Since,
  holding: z.number().optional(),
  /** Of earlier sessions, the eldest first. */
  readings: z.array(Reading).default([]),
});
type Holders = z.output<typeof Holders>;

/** Maximum earlier readings: a connection moves a few times at most while its former holder is paused. */
const MAX_READINGS = 8;

/** Readings of all sessions before the next one. A holder that opened the channel again counts from its first start. */
export function readingsBefore(before: Holders | null): Reading[] {
  if (before === null) return [];
  const { readings, since, holding = 0 } = before;
  const own = readings.findIndex((one) => one.holding === holding && one.until === undefined);
  if (own < 0) return [...readings, { holding, since }].slice(-MAX_READINGS);
  return readings.map((one, n) => (n === own ? { ...one, since: earliest(since, one.since) } : one));
}

function earliest(later: Reading['since'], since: Reading['since']): Reading['since'] {
  const merged = { ...later };
  for (const [name, at] of Object.entries(since)) {
    const other = merged[name];
    if (other === undefined || isBefore(at, other)) merged[name] = at;
  }
  return merged;
}

/** Readings of the holders after this one, the eldest first. */
export function readingsAfter(state: Json, holding: number): Pick<Reading, 'since' | 'until'>[] {
  const holders = Holders.safeParse(state).data;
  if (holders === undefined) return [];
  return [...holders.readings.filter((one) => one.holding > holding), { since: holders.since }];
}
