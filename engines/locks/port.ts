import type { Queryable } from '../postgres/port';

/**
 * Advisory locks with a fixed number, in one list, because two uses of one number would wait for each other. A number
 * never gets another purpose, because a process of the previous release may hold it. The steps of the schema contain
 * their numbers as literals (test/ports/locks.test.ts compares them with this list). Other locks are hashes of a name,
 * or belong to one process (engines/postgres/process-session.ts).
 */
export const LOCKS = {
  /** The schema's steps; the installation's first lock. */
  migrations: 7_070_001,
  /** Positions of domain events: held from an append's first statement to its commit. */
  event_order: 7_070_002,
  /** Creation of topics of the embedded broker. */
  broker_topics: 7_070_003,
  /** Destruction of subject keys, and their import from an export. */
  subject_keys: 7_070_005,
  /** Creation of the first signing key. */
  signing_keys: 7_070_006,
  /** The one archiver. */
  archiver: 7_070_007,
  /** All of the outbox, while a process may read it by one order of ids. See docs/decisions/0010 and 0040. */
  outbox_order: 7_070_008,
  /** A restore that fills an empty database. */
  restore: 7_070_009,
  /** Creation of the demo account. */
  demo_data: 7_070_010,
  /** Shared by every wake-up link, so that a link can detect others. */
  wakeup_links: 7_070_011,
  /** Release of the jobs of dead processes. */
  job_release: 7_070_012,
  /** Division of work among processes. */
  work_shares: 7_070_013,
  /** Automatic build of a read model next to its live tables: one at a time. */
  projection_build: 7_070_015,
  /** Shared by backups while they copy tables; exclusive for pending steps of the schema. */
  backup: 7_070_017,
} as const;

/**
 * First numbers of advisory locks that have two; in PostgreSQL they never collide with locks of one number. The second
 * is the hash of a name, unless stated otherwise.
 */
export const LOCK_PAIRS = {
  /** The rebuild of one projection; shared by tasks that must not run at the same time. */
  rebuild: 7_070_003,
  /** Balancing of the members of one consumer group. */
  broker_group: 7_070_004,
  /** Ids and sequences of one shard of the outbox, by its number: from a projector's last statement to its commit. */
  outbox_shard: 7_070_016,
  /** Messages of one speaker in one channel: from their count to the stored intent. */
  chat_pace: 7_070_018,
  /** Names of the variables of one account's automations. */
  automation_variables: 7_070_019,
} as const;

/** A lock of one number, or of {@link LOCK_PAIRS} and a name. */
export type LockKey = number | { pair: number; name: string };

/** A lock that is held at this moment, as far as this process knows. */
export interface HeldLock {
  /** Aborted with {@link LockLost} when the connection that holds the lock is gone. */
  readonly signal: AbortSignal;
  /** Whether the lock is held, as the server sees it: for the transaction that must not be committed without it. */
  stillHeld(tx: Queryable): Promise<boolean>;
}

/** Another session holds the lock. */
export class LockTaken extends Error {
  constructor() {
    super('the lock is held by another session');
    this.name = 'LockTaken';
  }
}

/** The connection that held the lock is lost, and with it the lock: another session may have it. */
export class LockLost extends Error {
  constructor(cause: unknown) {
    super('the connection that held the lock was lost', { cause });
    this.name = 'LockLost';
  }
}
