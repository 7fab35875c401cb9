import { appendFileSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { createPostgresJobs, type PostgresJobsOptions } from '../../engines/jobs/postgres';
import { createPayloadSealing } from '../../engines/jobs/sealing';
import type { JobQueue } from '../../engines/jobs/port';
import type { Metrics } from '../../engines/metrics/port';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { ProcessSession } from '../../engines/postgres/process-session';
import type { SubjectKeys } from '../../privacy/subject-keys/port';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { event, events } from '../../kernel/event';
import { job, type JobDeclaration } from '../../kernel/job';
import { sql } from '../../kernel/sql';
import { all, eventProjection } from '../../projections/runtime/drive/handlers';
import { createJobs, type Jobs } from '../../reactors/runtime/jobs';
import { silentLog } from './log';
import { engines } from './projections';

export interface JobNode<Services> {
  jobs: Jobs<Services>;
  queue: JobQueue;
  db: PostgresDatabase;
  session: ProcessSession;
  subject_keys: SubjectKeys;
  running?: { stop(): Promise<void> };
  close(): Promise<void>;
}

/** What a process needs to run these jobs on a database, fast at everything that takes its time in earnest. */
export async function jobNode<Services>(
  url: string,
  declared: readonly JobDeclaration<Services>[],
  services: Services,
  options: Partial<PostgresJobsOptions> & { metrics?: Metrics; start?: boolean } = {},
): Promise<JobNode<Services>> {
  const { metrics = createPrometheusMetrics({}), start = true, ...times } = options;
  const db = new PostgresDatabase({ url, name: 'jobs', size: 6 });
  const session = new ProcessSession({ connectionString: url }, silentLog);
  const wakeups = createLocalWakeups();
  const on = await engines(db);
  const queue = createPostgresJobs({
    db,
    wakeups,
    process: session,
    log: silentLog,
    grace_ms: 2_500,
    beat_ms: 100,
    poll_ms: 100,
    ...times,
  });
  const jobs = createJobs<Services>({
    queue,
    db,
    declared,
    sealing: createPayloadSealing(declared as readonly JobDeclaration[], on.subject_keys),
    services,
    log: silentLog,
    metrics,
    pauses: { first_ms: 20, most_ms: 100 },
  });
  const node: JobNode<Services> = {
    jobs,
    queue,
    db,
    session,
    subject_keys: on.subject_keys,
    async close() {
      await node.running?.stop();
      await session.close();
      await on.close();
      await wakeups.close();
      await db.close();
    },
  };
  if (start) node.running = await jobs.start();
  return node;
}

/** What {@link asking} reads. */
export const ASKED = events({ 'thing:asked': event({ thing_id: z.uuid(), note: z.string() }) });

/** A row for each event, and a job that leaves another. */
export const asking = eventProjection({
  name: 'asking',
  version: 1,
  tables: ['asked'],
  events: [ASKED],
  on: { 'thing:asked': all(sql`insert into asked select thing_id from e`) },
  jobs: { 'thing:asked': { 'noting-repeat': ({ thing_id: key, note }) => [{ key, payload: { note, wait_ms: 0 } }] } },
});
export const ASKING = 'create table asked (thing_id uuid primary key)';

/** Where the tests' job leaves its effects. */
export const EFFECTS = 'create table job_effects (key text, note text)';

export interface Notebook {
  /** A line for each call to the outside. */
  outside: string;
}

/** Maximum time of a timer. */
const FOREVER_MS = 2 ** 31 - 1;

/**
 * Calls the outside (a line in a file), waits, and leaves one row. A `held` job waits forever at its first call, so
 * that its process or its database ends before its effect.
 */
export const noting = (after_unknown: 'repeat' | 'park' = 'repeat') =>
  job({
    name: `noting-${after_unknown}`,
    payload: { note: z.string(), wait_ms: z.number(), held: z.boolean().optional() },
    after_unknown,
    retries: 50,
    async run({ note, wait_ms, held = false }, { key, signal }, { outside }: Notebook) {
      appendFileSync(outside, `${key}\n`);
      const calls = readFileSync(outside, 'utf8').split('\n');
      const is_first = calls.filter((call) => call === key).length === 1;
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(resolve, held && is_first ? FOREVER_MS : wait_ms);
        signal.addEventListener('abort', () => {
          clearTimeout(timer);
          reject(signal.reason as Error);
        });
      });
      return (tx) => tx.query('insert into job_effects (key, note) values ($1, $2)', [key, note]);
    },
  });
