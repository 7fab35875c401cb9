import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';

export const RUN_STATUSES = [
  'pending',
  'running',
  'waiting',
  'succeeded',
  'failed',
  'unknown',
  'expired',
  'cancelled',
] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** Milliseconds after a cause of another kind than a line of a chat in which calls are made. */
export const CAUSE_MS = 5 * 60_000;
/** Runs of an account that are under way at once; more are pending. */
export const RUNS_AT_ONCE = 20;
/** Runs of an account that begin within a minute. */
export const RUNS_A_MINUTE = 600;
/** Runs of an automation that wait in its queue. */
export const MAX_QUEUE = 100;
/** Steps of a run. */
export const MAX_STEPS = 1_000;
/** Characters of all values that a step fills in. */
export const MAX_INPUT = 256 * 1024;
/** Depth of causes that starts nothing. */
export const MAX_DEPTH = 8;
/** Days for which runs are kept. */
export const RUN_DAYS = 30;

/** Names of the jobs. */
export const START_AUTOMATION = 'start-automation-run';
export const END_RUNS = 'end-automation-runs';
export const START_REWARD = 'start-reward-run';

/** Cause of a run, as its steps read it. */
export const RunCause = z.object({
  platform: z.string().nullable(),
  event: z
    .object({
      id: z.string().nullable(),
      type: z.string(),
      platform: z.string(),
      raw: z.string(),
      created_at: z.string(),
    })
    .nullable(),
  author: z.object({ id: z.string().nullable(), name: z.string().nullable(), role: z.string().nullable() }).nullable(),
  /** Keyed hash of the person of the cause. */
  person: z.string().nullable(),
  /** Person under whose key values of the cause are sealed. */
  subject: z.string().nullable(),
  args: z.string().nullable(),
  channel_id: z.string().nullable(),
  message_id: z.string().nullable(),
  live_chat_id: z.string().nullable(),
});
export type RunCause = z.output<typeof RunCause>;

export const NO_CAUSE: RunCause = {
  ...{ platform: null, event: null, author: null, person: null, subject: null, args: null },
  ...{ channel_id: null, message_id: null, live_chat_id: null },
};

/** A start of a run, as jobs carry it. */
export const RunStart = {
  account_id: z.uuid(),
  automation_id: z.uuid(),
  run_id: z.uuid(),
  /** Names the cause: it starts one run of the automation. */
  start_key: z.string(),
  trigger: z.string(),
  /** Triggers of the graph at which the run begins. */
  node_ids: z.array(z.uuid()),
  event_id: z.uuid().nullable(),
  depth: z.int(),
  /** Milliseconds since 1970. */
  at_ms: z.int(),
  /** Milliseconds in which calls are made. */
  window_ms: z.int(),
  /** Permissions of the user who runs the automation by hand; null: the run reads everything. */
  permissions: z.array(z.string()).nullable(),
  /** Keyed hashes of the persons of the cause. */
  persons: z.array(z.string()),
  subject: z.string().nullable(),
  /** JSON text of the cause. */
  cause: z.string().nullable(),
};
export type RunStart = z.output<z.ZodObject<typeof RunStart>>;

const { automation_id: _automation, node_ids: _nodes, ...common } = RunStart;
/** A start of a run by the redemption of a reward, as jobs carry it. */
export const RewardStart = { ...common, reward_id: z.uuid() };

const subjectOf = ({ subject }: Record<string, unknown>): string | null =>
  typeof subject === 'string' ? subject : null;
/** The person of the cause, else the account. */
const ownerOf = (start: Record<string, unknown>): string =>
  subjectOf(start) ?? `automation-start:${String(start.account_id)}`;
/** Members about the person of the cause. */
export const PERSONAL_START = { subject: subjectOf, cause: ownerOf };

const ids = { run_id: z.uuid(), automation_id: z.uuid(), account_id: z.uuid() };

/** Runs that a member starts by hand; all others are rows alone. */
export const AUTOMATION_RUN_EVENTS = events({
  'automation_run:requested': event(
    { ...ids, permissions: z.array(z.string()).nullable(), requested_at: instant() },
    { audit: { target: ['automation', 'automation_id'], omit: ['permissions'] } },
  ),
});
export type AutomationRunEvent = EventOf<typeof AUTOMATION_RUN_EVENTS>;
interface RunCommand {
  type: 'automation_run:request';
  run_id: string;
  automation_id: string;
  account_id: string;
  permissions: string[] | null;
  now: string;
}

export const automationRunStream = (run_id: string): string => `automation-run-${run_id}`;

export const automationRun: Decider<AutomationRunEvent | null, RunCommand, AutomationRunEvent> = {
  initial: null,
  decide(last, { type: _type, now, ...requested }) {
    return last === null ? [{ type: 'automation_run:requested', ...requested, requested_at: now }] : [];
  },
  evolve: (_last, event) => event,
};
