import { Cron } from 'croner';
import { LRUCache } from 'lru-cache';

/** When a schedule is due: a pattern in a time zone, or an interval. */
export type Schedule = { cron: string; time_zone: string } | { interval_seconds: number };

/** Seconds of the shortest interval. */
export const MIN_INTERVAL_SECONDS = 60;
/** Seconds of the longest interval: a year. */
export const MAX_INTERVAL_SECONDS = 31_536_000;

const MINUTE_MS = 60_000;
const FIELD = /^[\d*/,\-a-z]+$/i;
const EVERY_MINUTE: ReadonlySet<string> = new Set(['*', '*/1', '0-59']);
const EVERY_HOUR: ReadonlySet<string> = new Set(['*', '*/1', '0-23']);

/** Schedule of a config; a text names what is wrong with it. */
export function scheduleOf(config: {
  cron?: string | undefined;
  time_zone?: string | undefined;
  interval_seconds?: number | undefined;
}): Schedule | string {
  const { cron, time_zone, interval_seconds } = config;
  if (interval_seconds !== undefined)
    return cron === undefined && time_zone === undefined
      ? { interval_seconds }
      : 'cron and time_zone, or interval_seconds alone';
  if (cron === undefined || time_zone === undefined) return 'cron and time_zone, or interval_seconds, must be set';
  if (!isTimeZone(time_zone)) return 'time_zone must be a name of the IANA time zone database';
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5 || !fields.every((field) => FIELD.test(field))) return 'cron must have five fields';
  const schedule = { cron: fields.join(' '), time_zone };
  try {
    return nextLocal(schedule.cron, Date.UTC(2000, 0), false) === null ? 'cron must name a time that comes' : schedule;
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return 'cron must have five valid fields';
    throw error;
  }
}

/**
 * First due time after an instant, in milliseconds since 1970. A local time that daylight saving skips is due at the
 * first minute after the gap, one that occurs twice at its first occurrence. Patterns of every hour or minute are due
 * at each real one. Null when none comes.
 */
export function nextDue(schedule: Schedule, after_ms: number): number | null {
  if ('interval_seconds' in schedule) return after_ms + schedule.interval_seconds * 1000;
  const [minute, hour] = schedule.cron.split(' ') as [string, string];
  return EVERY_MINUTE.has(minute) || EVERY_HOUR.has(hour)
    ? nextReal(schedule, after_ms)
    : nextFixed(schedule, after_ms);
}

type CronSchedule = Extract<Schedule, { cron: string }>;

/** Due time of a pattern with fixed times of day. */
function nextFixed({ cron, time_zone }: CronSchedule, after_ms: number): number | null {
  let local: number | null = after_ms + offsetAt(time_zone, after_ms);
  for (;;) {
    local = nextLocal(cron, local, false);
    if (local === null) return null;
    const due = firstInstant(time_zone, local);
    if (due > after_ms) return due;
  }
}

/** Due time of a pattern of every hour or minute: continues with the new offset behind each change of the clock. */
function nextReal({ cron, time_zone }: CronSchedule, after_ms: number): number | null {
  let [from_ms, is_included] = [after_ms, false];
  for (;;) {
    const offset = offsetAt(time_zone, from_ms);
    const local = nextLocal(cron, from_ms + offset, is_included);
    if (local === null) return null;
    const due = local - offset;
    if (offsetAt(time_zone, due) === offset) return due;
    [from_ms, is_included] = [changeBetween(time_zone, from_ms, due), true];
  }
}

/** First minute with another offset than at `from_ms`. At `to_ms` the offset is another one. */
function changeBetween(time_zone: string, from_ms: number, to_ms: number): number {
  const offset = offsetAt(time_zone, from_ms);
  let [before, after] = [Math.floor(from_ms / MINUTE_MS), Math.ceil(to_ms / MINUTE_MS)];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (offsetAt(time_zone, middle * MINUTE_MS) === offset) before = middle;
    else after = middle;
  }
  return after * MINUTE_MS;
}

const DAY_MS = 86_400_000;

/** First instant of a local time; of a skipped one, the first minute after the gap. */
function firstInstant(time_zone: string, local: number): number {
  const [before, after] = [offsetAt(time_zone, local - DAY_MS), offsetAt(time_zone, local + DAY_MS)];
  const instants = [local - before, local - after].sort((a, b) => a - b);
  const found = instants.find((instant) => instant + offsetAt(time_zone, instant) === local);
  return found ?? changeBetween(time_zone, instants[0]!, instants[1]!);
}

/** Next local time of a pattern, as if it were UTC. */
function nextLocal(cron: string, local: number, is_included: boolean): number | null {
  // The library looks at whole seconds after the one it is asked about.
  const from = new Date(is_included ? local - 1000 : local);
  return patternOf(cron).nextRun(from)?.getTime() ?? null;
}

const patterns = new LRUCache<string, Cron>({ max: 1_000 });

/** @throws TypeError, RangeError for a malformed pattern */
function patternOf(cron: string): Cron {
  const known = patterns.get(cron);
  if (known !== undefined) return known;
  const made = new Cron(cron, { timezone: 'UTC', mode: '5-part', paused: true });
  patterns.set(cron, made);
  return made;
}

const formats = new LRUCache<string, Intl.DateTimeFormat>({ max: 200 });

/** @throws RangeError for an unknown time zone */
function formatOf(time_zone: string): Intl.DateTimeFormat {
  const known = formats.get(time_zone);
  if (known !== undefined) return known;
  const parts = { year: 'numeric', month: 'numeric', day: 'numeric' } as const;
  const times = { hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' } as const;
  const made = new Intl.DateTimeFormat('en-u-ca-iso8601', { timeZone: time_zone, ...parts, ...times });
  formats.set(time_zone, made);
  return made;
}

function isTimeZone(time_zone: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(time_zone)) return false;
  try {
    formatOf(time_zone);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Milliseconds that the local time is ahead of UTC. */
function offsetAt(time_zone: string, instant: number): number {
  const parts = Object.fromEntries(
    formatOf(time_zone)
      .formatToParts(instant)
      .map(({ type, value }) => [type, Number(value)]),
  ) as Record<string, number>;
  const { year, month, day, hour, minute, second } = parts;
  return Date.UTC(year!, month! - 1, day, hour, minute, second) - Math.floor(instant / 1000) * 1000;
}
