import type { JsonObject } from '../../kernel/json';
import type { Queryable } from '../postgres/port';

/** Told after the commit that enqueued; without it a job begins up to five seconds later. */
export const JOBS_WAKEUP = 'jobs';

export interface NewJob {
  name: string;
  /** Unique among all jobs that ever were; the same key is the same job. At most 400 characters, nothing personal. */
  key: string;
  payload: JsonObject;
  /** RFC 3339; absent: at once. */
  run_at?: string;
  /** How often it is tried at most, at least 1. */
  tries: number;
  /** A try of unknown outcome is not repeated but left to an operator. */
  park: boolean;
  /** Not stored while there is a job of its name that still has a try, or is in its last one. */
  alone?: boolean;
}

/**
 * `waiting`: its time has not come; `ready`; `running`; `failed`: every try failed; `parked`: nobody knows what its
 * last try did outside.
 */
export const JOB_STATES = ['waiting', 'ready', 'running', 'failed', 'parked'] as const;
export type JobState = (typeof JOB_STATES)[number];

export interface StoredJob {
  id: number;
  name: string;
  key: string;
  state: JobState;
  /** Begun tries, of `tries` at most. */
  attempts: number;
  tries: number;
  run_at: string;
  enqueued_at: string;
  error: string | null;
}

/**
 * A job that this process runs. Exactly one of its ends must be called, and throws {@link JobLost} when it is no longer
 * ours.
 */
export interface HeldJob {
  readonly name: string;
  readonly key: string;
  readonly payload: JsonObject;
  /** 1 for the first. */
  readonly attempt: number;
  readonly tries: number;
  /** Aborted when this process stops, and when others may have taken it for dead. */
  readonly signal: AbortSignal;
  /** True when a job of this key was finished before. */
  finishedBefore(): Promise<boolean>;
  /**
   * Ends it: the effect, the finished key and the end of the job are one transaction. False when the key had been
   * finished before; then there is no effect. `keep_ms` bounds how long the key is remembered; absent: for ever.
   */
  finish(effect?: (tx: Queryable) => Promise<unknown>, keep_ms?: number): Promise<boolean>;
  /** Tries it again after a pause, unless it was its last try. */
  again(error: string, pause_ms: number): Promise<'again' | 'failed'>;
  fail(error: string): Promise<void>;
  park(error: string): Promise<void>;
  /** As if it had not been tried: another process takes it. */
  giveBack(): Promise<void>;
}

/** Another process has the job, or it was dropped: what this one did of it has no effect in our database. */
export class JobLost extends Error {
  constructor(key: string) {
    super(`job ${key} is not ours any more`);
    this.name = 'JobLost';
  }
}

export interface JobWorkers {
  /** Takes nothing new, waits for what runs, and aborts it after `drain_ms`. */
  stop(drain_ms: number): Promise<void>;
}

export interface WorkOptions {
  names: readonly string[];
  run(job: HeldJob): Promise<void>;
  /** How many at a time. */
  concurrency: number;
  /** Told of jobs whose process died, after they were released or parked. */
  onReleased?(jobs: number): void;
}

/** Jobs in PostgreSQL. */
export interface JobQueue {
  /** Stores jobs in the caller's transaction, without NOTIFY. Answers how many are new. */
  enqueue(tx: Queryable, jobs: readonly NewJob[]): Promise<number>;
  /** To be called after the commit. */
  wake(): void;
  /** Runs jobs until stopped. Those of a process that died are released within 60 s, of a living one never. */
  work(options: WorkOptions): Promise<JobWorkers>;
  /** By state, oldest first. */
  list(filter: { state?: JobState; name?: string; limit: number }): Promise<StoredJob[]>;
  /** How many there are by name and state, and for how many seconds the first ready one has waited. */
  counts(): Promise<{ name: string; state: JobState; count: number; oldest_seconds: number }[]>;
  /** Runs failed, parked or waiting jobs now, with all their tries. Answers how many. */
  retry(ids: readonly number[]): Promise<number>;
  /** Deletes jobs that do not run; their keys stay free. Answers how many. */
  drop(ids: readonly number[]): Promise<number>;
  /** Forgets finished keys whose time is over. */
  trim(): Promise<number>;
}
