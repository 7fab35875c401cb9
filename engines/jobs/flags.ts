import type { NewJob } from './port';

/**
 * Flags of a job's row: a JSON object whose names the library can search. Facts of a job for which the library has no
 * column.
 */

/** The job is left to an operator after a try with an unknown outcome. */
export const PARKS = 'park';
/** The job ends by itself after a try with an unknown outcome. */
export const ENDS = 'end';
/** A try of a job with {@link ENDS} was cut off. */
export const INTERRUPTED = 'interrupted';
/** Its value is the owner. An index finds the jobs of an owner. */
export const OWNER = 'owner';
/** Its value is the time after which no try begins. */
export const EXPIRES_AT = 'expires_at';

export const laneFlag = (lane: string): string => `lane:${lane}`;

/** JSON text of a job's flags; null without any. */
export function flagsText({ after_unknown, lane, owner, expires_at }: NewJob): string | null {
  const flags = {
    ...(after_unknown === 'park' && { [PARKS]: true }),
    ...(after_unknown === 'end' && { [ENDS]: true }),
    ...(lane !== undefined && { [laneFlag(lane)]: true }),
    ...(owner !== undefined && { [OWNER]: owner }),
    ...(expires_at !== undefined && { [EXPIRES_AT]: expires_at }),
  };
  return Object.keys(flags).length === 0 ? null : JSON.stringify(flags);
}

/** The flag of a job's lane; undefined without a lane. */
export const laneIn = (flags: Readonly<Record<string, unknown>> | null): string | undefined =>
  Object.keys(flags ?? {}).find((name) => name.startsWith(laneFlag('')));
