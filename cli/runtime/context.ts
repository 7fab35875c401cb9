import type { Settings } from '../../kernel/settings';
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
import type { SecretBox } from '../../engines/secrets/port';
import type { SubjectKeys } from '../../engines/subject-keys/port';
import type { Wakeups } from '../../engines/wakeups/port';
import type { Projection } from '../../kernel/projection';
import type { JobTools } from '../../access/job';
import type { Jobs } from '../../reactors/runtime/jobs';
import type { SettleReactionDeps } from '../../reactors/runtime/retry-letters';
import type { ReadArchived } from '../../projections/runtime/rebuild';
import type { TrimReadModel } from '../../projections/runtime/rebuild-options';

/** What a command on projections works with: the engines of the configuration, connected. */
export interface CliContext {
  db: Database;
  broker: Broker;
  records: RecordLog;
  events: EventStore;
  /** Makes events readable that were kept as they are stored. */
  readStored(events: readonly StoredEvent[]): Promise<StoredEvent[]>;
  wakeups: Wakeups;
  projections: readonly Projection[];
  /** What a reaction is done again with, and where jobs go that follow from what is applied again. */
  reactions: {
    reactors: SettleReactionDeps['reactors'];
    jobs: Pick<Jobs<JobTools>, 'enqueue' | 'enqueueNamed' | 'wake'>;
  };
  log: Logger;
  /** Present where an archiver moves old records to blobs. */
  readArchived?: ReadArchived;
  /** Deletes rows past retention from a rebuilt read model. */
  trim?: TrimReadModel;
  close(): Promise<void>;
}

/** The same, with what the other rooms need. */
export interface FullContext extends CliContext {
  db: PostgresDatabase;
  blobs: Blobs;
  /** The events as they lie in the store. */
  stored_events: EventStore;
  subject_keys: SubjectKeys;
  relay: Relay;
  jobs: JobQueue;
  secrets: SecretBox;
  settings: Settings;
  metrics: Metrics;
}

/** Connects to the engines; a command calls it once, when its arguments are known to be good. */
export type Connect<Context extends CliContext = CliContext> = () => Promise<Context>;

/**
 * Runs a command's work with a connected context and closes it. Exit codes: 0 done, 1 failed (the reason on stderr), 2
 * wrong usage. `work` returns its exit code; nothing is 0.
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
