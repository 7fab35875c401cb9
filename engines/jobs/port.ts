import type { JsonObject } from '../../lib/json/json';
import type { Queryable } from '../postgres/port';

/** Wake-up after the commit of new jobs; without it a job begins up to five seconds later. */
export const JOBS_WAKEUP = 'jobs';

export interface NewJob {
  name: string;
  /** Unique among all jobs; the same key within 7 days is the same job. At most 400 characters, nothing personal. */
  key: string;
  payload: JsonObject;
  /** RFC 3339; default: at once. */
  run_at?: string | undefined;
  /** Most tries, at least 1. */
  tries: number;
  /** Treatment of a try with an unknown outcome: it is repeated, left to an operator, or ended by the job itself. */
  after_unknown: 'repeat' | 'park' | 'end';
  /** A process runs at most four jobs of one lane at a time. */
  lane?: string | undefined;
  /** Waiting jobs of an owner can be cancelled together. */
  owner?: string | undefined;
  /** RFC 3339; no try begins later. */
  expires_at?: string | undefined;
  /** Not stored while a job of its name has tries left, or is in its last one. */
  alone?: boolean;
}

/**
 * `waiting`: before its time; `ready`; `running`; `failed`: every try failed; `parked`: the effect of its last try on
 * other systems is unknown.
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
 * A job that this process runs. Exactly one of its ends must be called; an end throws {@link JobLost} when this process
 * no longer holds the job.
 */
export interface HeldJob {
  readonly name: string;
  readonly key: string;
  readonly payload: JsonObject;
  /** 1 for the first. */
  readonly attempt: number;
  readonly tries: number;
  readonly enqueued_at: string;
  /** RFC 3339; null without an end. */
  readonly expires_at: string | null;
  /** True for a job that ends after an unknown outcome, when an earlier try of it was cut off. */
  readonly interrupted: boolean;
  /** Aborted when this process stops, and when others may treat it as dead. */
  readonly signal: AbortSignal;
  /** True when a job of this key was finished before. */
  finishedBefore(): Promise<boolean>;
  /**
   * Ends the job: the effect, the finished key and the end of the job are one transaction. False when the key had been
   * finished before; then there is no effect. `keep_ms` bounds the storage of the key; default: 7 days.
   */
  finish(effect?: (tx: Queryable) => Promise<unknown>, keep_ms?: number): Promise<boolean>;
  /** Schedules the next try after a pause, unless this was the last one. */
  again(error: string, pause_ms: number): Promise<'again' | 'failed'>;
  fail(error: string): Promise<void>;
  park(error: string): Promise<void>;
  /** Releases the job without counting the try: another process takes it. */
  giveBack(): Promise<void>;
}

/** Another process has the job, or it was dropped: the work of this process has no effect in our database. */
export class JobLost extends Error {
  constructor(key: string) {
    super(`job ${key} is not ours any more`);
    this.name = 'JobLost';
  }
}

export interface JobWorkers {
  /** Takes no new jobs, waits for the running ones, and aborts them after `drain_ms`. */
  stop(drain_ms: number): Promise<void>;
}

export interface WorkOptions {
  names: readonly string[];
  run(job: HeldJob): Promise<void>;
  /** Most jobs at a time. */
  concurrency: number;
  /** Called with the number of jobs of dead processes, after they were released or parked. */
  onReleased?(jobs: number): void;
}

/** Jobs in PostgreSQL. */
export interface JobQueue {
  /** Stores jobs in the caller's transaction, without NOTIFY. Returns the number of new jobs. */
  enqueue(tx: Queryable, jobs: readonly NewJob[]): Promise<number>;
  /** To be called after the commit. */
  wake(): void;
  /**
   * Deletes the jobs of an owner that do not run, but for those of which a try was cut off: these end with their own
   * effect. Returns their number.
   */
  cancel(tx: Queryable, owner: string): Promise<number>;
  /** Runs jobs until stopped. Jobs of a dead process are released within 60 s, of a live one never. */
  work(options: WorkOptions): Promise<JobWorkers>;
  /** By state, oldest first. */
  list(filter: { state?: JobState; name?: string; limit: number }): Promise<StoredJob[]>;
  /** Number of jobs by name and state, and the seconds for which the first ready one has waited. */
  counts(): Promise<{ name: string; state: JobState; count: number; oldest_seconds: number }[]>;
  /** Runs failed, parked or waiting jobs now, with all their tries. Returns their number. */
  retry(ids: readonly number[]): Promise<number>;
  /** Deletes jobs that do not run; their keys stay free. Returns their number. */
  drop(ids: readonly number[]): Promise<number>;
  /** Deletes expired finished keys. */
  trim(): Promise<number>;
}
