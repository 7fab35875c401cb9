import { dropAbandonedProfiles } from '../access/abandoned-profiles';
import { sweepGrants } from '../access/connection-grants';
import { sweepStates } from '../access/oauth-states';
import { sweepIdempotencyKeys } from '../api/idempotency';
import type { Blobs } from '../engines/blobs/port';
import type { EventStore } from '../engines/event-store/port';
import type { Database } from '../engines/postgres/port';
import type { JobQueue } from '../engines/jobs/port';
import type { Logger } from '../engines/log/port';
import type { SubjectKeys } from '../engines/subject-keys/port';
import { trimParkedWebhooks } from '../ingest/runtime/parked';
import { periodic, type JobDeclaration } from '../kernel/job';
import { sweepEvents } from '../maintenance/events-retention';
import { sweepUploads } from '../maintenance/upload-sweep';
import { ensureEventLogPartitions } from '../projections/events';
import { ensureLedgerPartitions, trimBodies } from '../projections/runtime/ledger';
import { ensureStreamSamplePartitions } from '../projections/stream-samples';
import { OPERATIONS } from './areas';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export interface UpkeepParts {
  db: Database;
  events: EventStore;
  subject_keys: Pick<SubjectKeys, 'expire'>;
  jobs: Pick<JobQueue, 'trim'>;
  blobs: Pick<Blobs, 'delete'>;
  log: Logger;
}

/** Work of the system that comes again and again, of one process at a time; each must bear being done twice. */
export function upkeep({ db, events, subject_keys, jobs, blobs, log }: UpkeepParts): JobDeclaration[] {
  const uploads = OPERATIONS.flatMap(({ takes }) => takes ?? []);
  const every = (every_ms: number, name: string, run: Parameters<typeof recurring>[2]) =>
    recurring(every_ms, name, run, log);
  return [
    every(DAY_MS, 'event-log-partitions', () => ensureEventLogPartitions(db)),
    every(DAY_MS, 'stream-sample-partitions', () => ensureStreamSamplePartitions(db)),
    every(DAY_MS, 'events-retention', (signal) => sweepEvents(db, signal)),
    every(HOUR_MS, 'ingest-dead-letters', () => trimParkedWebhooks(db)),
    every(HOUR_MS, 'subject-keys', () => subject_keys.expire()),
    every(DAY_MS, 'ledger-partitions', () => ensureLedgerPartitions(db)),
    every(HOUR_MS, 'ledger-bodies', () => trimBodies(db)),
    every(15 * MINUTE_MS, 'idempotency-keys', () => sweepIdempotencyKeys(db)),
    every(HOUR_MS, 'abandoned-profiles', () => dropAbandonedProfiles({ db, events })),
    every(HOUR_MS, 'oauth-states', () => sweepStates(db)),
    every(DAY_MS, 'connection-grants', () => sweepGrants(db)),
    every(DAY_MS, 'finished-jobs', () => jobs.trim()),
    every(DAY_MS, 'uploads', (signal) => sweepUploads({ db, blobs, uploads }, signal)),
  ];
}

/** Periodic work that says in the log when it changed something. */
export const recurring = (
  every_ms: number,
  name: string,
  run: (signal: AbortSignal) => Promise<number>,
  log: Logger,
): JobDeclaration =>
  periodic({ name, every_ms, run, onChanged: (changed) => log.info({ job: name, changed }, 'upkeep is done') });
