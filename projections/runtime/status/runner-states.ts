/**
 * States of a projection in this process. `building`: for the first time, silently, or a new version next to the old;
 * `running`; `standby`: another process drives it; `superseded`: a later version is live; `backoff`: a dependency is
 * unavailable; `stopped`: by a fault of the program or for want of space, retried with growing pauses;
 * `needs_newer_build`: at an event that this release cannot read; `needs_rebuild`: its source no longer holds the
 * records after its checkpoint; `refused`: its checkpoint is of another engine; `ended`: with its process. Decision
 * 0014.
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
/** States that need an operator; the others pass by themselves. */
export const WAITING_STATES: readonly RunnerState[] = [
  'needs_rebuild',
  'refused',
  'stopped',
  'needs_newer_build',
  'superseded',
];
