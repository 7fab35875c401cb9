import type { Queryable } from '../postgres/port';

/**
 * Every advisory lock that has a fixed number, in one place: two uses of one number would wait for each other. A number
 * is never given to another purpose, since a process of the build before may hold it. The steps of the schema write
 * their numbers out (test/locks.test.ts holds them against this list). Other locks are hashes of a name, or belong to
 * one process (engines/postgres/process-session.ts).
 */
export const LOCKS = {
  /** The schema's steps; the installation's first lock. */
  migrations: 7_070_001,
  /** Positions of domain events: held from an append's first statement to its commit. */
  event_order: 7_070_002,
  /** Topics of the embedded broker being made. */
  broker_topics: 7_070_003,
  /** Keys of people being destroyed, or brought back from an export. */
  subject_keys: 7_070_005,
  /** The first signing key. */
  signing_keys: 7_070_006,
  /** The one archiver. */
  archiver: 7_070_007,
  /** All of the outbox, while a process may read it by one order of ids. See docs/decisions/0010 and 0040. */
  outbox_order: 7_070_008,
  /** A restore that fills an empty database. */
  restore: 7_070_009,
  /** The demo account being made. */
  demo_data: 7_070_010,
  /** Shared by every link that carries wake-ups: how many there are. */
  wakeup_links: 7_070_011,
  /** The one process that looks for jobs of dead ones. */
  job_release: 7_070_012,
  /** Work being divided among processes. */
  work_shares: 7_070_013,
  /** The one read model that is built beside its live tables without having been asked for. */
  projection_build: 7_070_015,
  /** Shared by backups while they copy tables; whole, of steps of the schema that are pending. */
  backup: 7_070_017,
} as const;

/**
 * First numbers of advisory locks that have two; PostgreSQL keeps these apart from those with one. The second is the
 * hash of a name, where nothing else is said.
 */
export const LOCK_PAIRS = {
  /** The rebuild of one projection; shared by what must not run beside it. */
  rebuild: 7_070_003,
  /** The members of one consumer group, counting off. */
  broker_group: 7_070_004,
  /** Ids and sequences of one shard of the outbox, by its number: from a projector's last statement to its commit. */
  outbox_shard: 7_070_016,
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

/** The connection that held the lock is gone, and with it the lock: somebody else may have it. */
export class LockLost extends Error {
  constructor(cause: unknown) {
    super('the connection that held the lock was lost', { cause });
    this.name = 'LockLost';
  }
}
