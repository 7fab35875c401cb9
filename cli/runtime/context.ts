import type { Settings } from '../../kernel/settings/settings';
import type { Blobs } from '../../engines/blobs/port';
import type { Broker } from '../../engines/broker/port';
import type { EventStore, StoredEvent } from '../../engines/event-store/port';
import type { JobQueue } from '../../engines/jobs/port';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { PostgresDatabase } from '../../engines/postgres/pool';
import type { Database } from '../../engines/postgres/port';
import type { RecordLog } from '../../engines/records/port';
import type { Relay } from '../../engines/relay/port';
import type { SecretBox } from '../../privacy/secrets/port';
import type { SubjectKeys } from '../../privacy/subject-keys/port';
import type { Wakeups } from '../../engines/wakeups/port';
import type { ApplyMode, Projection } from '../../kernel/projection';
import type { JobTools } from '../../app/job';
import type { Jobs } from '../../reactors/runtime/jobs';
import type { SettleReactionDeps } from '../../reactors/runtime/retry-letters';
import type { ReadArchived } from '../../projections/runtime/rebuild/rebuild';
import type { TrimReadModel } from '../../projections/runtime/rebuild/options';

/** Context of a command on projections: the configured engines, connected. */
export interface CliContext {
  db: Database;
  /** For rebuilds: pipelined, and without a bound of time. */
  build_db: Database;
  broker: Broker;
  records: RecordLog;
  events: EventStore;
  /** Decodes events that were kept in their stored form. */
  readStored(events: readonly StoredEvent[]): Promise<StoredEvent[]>;
  wakeups: Wakeups;
  projections: readonly Projection[];
  /** Reactors for repeated reactions, and the queue for jobs of repeated work. */
  reactions: {
    reactors: SettleReactionDeps['reactors'];
    jobs: Pick<Jobs<JobTools>, 'enqueue' | 'enqueueNamed' | 'cancel' | 'wake'>;
    /** Follows a repeated record. */
    whenCounted?: ApplyMode['whenCounted'];
  };
  log: Logger;
  /** Present where an archiver moves old records to blobs. */
  readArchived?: ReadArchived;
  /** Deletes rows past retention from a rebuilt read model. */
  trim?: TrimReadModel;
  close(): Promise<void>;
}

/** Context of all other commands. */
export interface FullContext extends CliContext {
  db: PostgresDatabase;
  blobs: Blobs;
  /** The event store without decoding. */
  stored_events: EventStore;
  subject_keys: SubjectKeys;
  relay: Relay;
  jobs: JobQueue;
  secrets: SecretBox;
  settings: Settings;
  metrics: Metrics;
}

export interface ConnectOptions {
  /** Refuses a database with an unfinished restore before anything is changed. Default false. */
  restored?: boolean;
}

/** Connects to the engines; a command calls it once, after validating its arguments. */
export type Connect<Context extends CliContext = CliContext> = (options?: ConnectOptions) => Promise<Context>;

/**
 * Runs a command's work with a connected context and closes it. Exit codes: 0 done, 1 failed (reason on stderr), 2
 * wrong usage. `work` returns its exit code; undefined is 0.
 */
export async function runCommand<Context extends CliContext>(
  connect: Connect<Context>,
  work: (context: Context) => Promise<number | void>,
): Promise<void> {
  let context: Context | undefined;
  try {
    context = await connect();
    process.exitCode = (await work(context)) ?? 0;
  } catch (error) {
    process.stderr.write(`lumio: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  } finally {
    await context?.close();
  }
}
