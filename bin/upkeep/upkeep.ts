import { dropAbandonedProfiles } from '../../services/identity/abandoned-profiles';
import { writeOutbox } from '../../projections/runtime/outbox/outbox';
import { reportDropped } from '../../services/automation/runs/dropped';
import { sweepRuns } from '../../services/automation/runs/retention';
import { sweepCommandUses } from '../../services/automation/command-uses';
import { sweepActs } from '../../services/automation/modules/warnings';
import { sweepDiscordPosts } from '../../services/discord/posts';
import { sweepDiscordBuckets } from '../../services/discord/buckets';
import type { SecretBox } from '../../privacy/secrets/port';
import { keepIdentities } from '../../services/chat/identities';
import { sweepRefreshes } from '../../services/chat/person-profiles';
import { sweepSends } from '../../services/chat/sends';
import { sweepSessionRows, sweepSessions } from '../../services/history/stream-sessions';
import { sweepGrants } from '../../services/connections/connection-grants';
import { sweepLastUses } from '../../access/authentication/last-uses';
import { sweepStates } from '../../services/oauth/oauth-states';
import { sweepIdempotencyKeys } from '../../api/rest/idempotency';
import type { LiveMessages } from '../../app/services';
import type { Bots } from '../../services/history/session-figures';
import { announceSession } from '../../services/history/live-sessions';
import type { Blobs } from '../../engines/blobs/port';
import type { EventStore } from '../../engines/event-store/port';
import type { Database } from '../../engines/postgres/port';
import type { JobQueue } from '../../engines/jobs/port';
import type { Logger } from '../../engines/log/port';
import type { SubjectKeys } from '../../privacy/subject-keys/port';
import { trimFirstSubscriptions } from '../../ingest/kick/first-subscriptions';
import { trimParkedWebhooks } from '../../ingest/runtime/parked/parked';
import { periodic, type JobDeclaration } from '../../kernel/job';
import { sweepChat } from '../../maintenance/retention/chat';
import { sweepKeptCounts } from '../../maintenance/retention/kept-counts';
import { sweepDissolved } from '../../maintenance/retention/dissolved-accounts';
import { sweepEvents } from '../../maintenance/retention/events';
import { sweepUploads } from '../../maintenance/retention/upload-sweep';
import { ensureEventLogPartitions } from '../../projections/events/event-log-partitions';
import { trimRetriedLetters } from '../../projections/runtime/dead-letter/dead-letters';
import { ensureLedgerPartitions, trimBodies } from '../../projections/runtime/ledger/ledger';
import { ensureStreamSamplePartitions } from '../../projections/history/stream-samples';
import { publicStreamOf } from '../../views/history/public-stats';
import { OPERATIONS } from '../areas';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export interface UpkeepParts {
  db: Database;
  secrets: SecretBox;
  events: EventStore;
  subject_keys: Pick<SubjectKeys, 'expire'>;
  jobs: Pick<JobQueue, 'trim'>;
  blobs: Pick<Blobs, 'delete'>;
  live: LiveMessages;
  /** Longest gap between two broadcasts of one session, in milliseconds. */
  grace_ms: number;
  bots: Bots;
  /** Interval of the job that joins and counts sessions, in milliseconds. */
  sessions_ms: number;
  log: Logger;
}

/** Recurring work of the system, run by one process at a time; each task is idempotent. */
export function upkeep(parts: UpkeepParts): JobDeclaration[] {
  const { db, secrets, events, subject_keys, jobs, blobs, live, grace_ms, bots, sessions_ms, log } = parts;
  const uploads = OPERATIONS.flatMap(({ takes }) => takes ?? []);
  const every = (every_ms: number, name: string, run: Parameters<typeof recurring>[2], timeout_ms?: number) =>
    recurring(every_ms, name, run, log, timeout_ms);
  const sessions = {
    db,
    events,
    grace_ms,
    bots,
    announce: announceSession({ live, publicStream: (of, id) => publicStreamOf(db, of, id) }),
  };
  return [
    // A session of millions of messages takes longer than the period.
    every(sessions_ms, 'stream-sessions', (signal) => sweepSessions(sessions, signal), 10 * MINUTE_MS),
    every(DAY_MS, 'session-rows', () => sweepSessionRows(db)),
    every(DAY_MS, 'event-log-partitions', () => ensureEventLogPartitions(db)),
    every(DAY_MS, 'stream-sample-partitions', () => ensureStreamSamplePartitions(db)),
    every(DAY_MS, 'events-retention', (signal) => sweepEvents(db, signal)),
    every(DAY_MS, 'chat-retention', (signal) => sweepChat(db, signal)),
    every(DAY_MS, 'kept-counts', (signal) => sweepKeptCounts(db, signal)),
    every(HOUR_MS, 'dissolved-accounts', (signal) => sweepDissolved(db, signal)),
    every(HOUR_MS, 'chat-sends', () => sweepSends(db)),
    every(HOUR_MS, 'bot-command-cooldowns', () => sweepCommandUses(db)),
    every(HOUR_MS, 'bot-module-acts', () => sweepActs(db)),
    every(HOUR_MS, 'discord-posts', () => sweepDiscordPosts(db)),
    every(DAY_MS, 'discord-buckets', () => sweepDiscordBuckets(db)),
    every(MINUTE_MS, 'dropped-automation-runs', () => reportDropped(db, writeOutbox)),
    every(HOUR_MS, 'automation-runs', (signal) => sweepRuns(db, signal)),
    every(HOUR_MS, 'chat-identities', (signal) => keepIdentities({ db, secrets }, signal)),
    every(HOUR_MS, 'profile-cooldowns', () => sweepRefreshes(db)),
    every(HOUR_MS, 'ingest-dead-letters', () => trimParkedWebhooks(db)),
    every(DAY_MS, 'dead-letters', () => trimRetriedLetters(db)),
    every(HOUR_MS, 'subject-keys', () => subject_keys.expire()),
    every(DAY_MS, 'ledger-partitions', () => ensureLedgerPartitions(db)),
    every(HOUR_MS, 'ledger-bodies', () => trimBodies(db)),
    every(15 * MINUTE_MS, 'idempotency-keys', () => sweepIdempotencyKeys(db)),
    every(HOUR_MS, 'abandoned-profiles', () => dropAbandonedProfiles({ db, events })),
    every(HOUR_MS, 'oauth-states', () => sweepStates(db)),
    every(DAY_MS, 'connection-grants', () => sweepGrants(db)),
    every(DAY_MS, 'kick-first-subscriptions', () => trimFirstSubscriptions(db)),
    every(DAY_MS, 'last-uses', () => sweepLastUses(db)),
    every(DAY_MS, 'finished-jobs', () => jobs.trim()),
    every(DAY_MS, 'uploads', (signal) => sweepUploads({ db, blobs, uploads }, signal)),
  ];
}

/** Periodic job that logs the number of changes it made. */
export const recurring = (
  every_ms: number,
  name: string,
  run: (signal: AbortSignal) => Promise<number>,
  log: Logger,
  timeout_ms?: number,
): JobDeclaration =>
  periodic({
    name,
    every_ms,
    ...(timeout_ms !== undefined && { timeout_ms }),
    run,
    onChanged: (changed) => log.info({ job: name, changed }, 'upkeep is done'),
  });
