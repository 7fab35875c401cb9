/**
 * What a projection is doing in this process. `building`: for the first time, silently, or a new version beside the
 * old; `running`; `standby`: another process drives it; `superseded`: a later version is live; `backoff`: something it
 * needs is away; `stopped`: by a mistake of the program, or for want of space, tried again with growing pauses;
 * `needs_newer_build`: at an event that this build cannot read; `needs_rebuild`: its source has lost what lies behind
 * its checkpoint; `refused`: its checkpoint is of another engine; `ended`: with its process. Decision 0014.
 */
export const RUNNER_STATES = [
  'starting',
  'building',
  'superseded',
  'running',
  'backoff',
  'standby',
  'needs_rebuild',
  'refused',
  'stopped',
  'needs_newer_build',
  'ended',
] as const;
export type RunnerState = (typeof RUNNER_STATES)[number];
/** States that a person should look at; the others pass by themselves. */
export const WAITING_STATES: readonly RunnerState[] = [
  'needs_rebuild',
  'refused',
  'stopped',
  'needs_newer_build',
  'superseded',
];
