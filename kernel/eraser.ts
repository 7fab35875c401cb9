import type { Blobs } from '../engines/blobs/port';
import type { Queryable } from '../engines/postgres/port';
import type { LoggedRecord } from '../engines/records/port';
import type { PersonalTexts, SubjectKeys } from '../privacy/subject-keys/port';

/** A person whom an erasure is about: a vendor's (`kick:987654321`), or one who logs in here (`user:<id>`). */
export interface Person {
  subject: string;
  /** The vendor's slug, or `user`. */
  kind: string;
  id: string;
}

export interface ErasureServices {
  db: Queryable;
  blobs: Blobs;
  subject_keys: SubjectKeys;
  texts: PersonalTexts;
}

/**
 * How an area forgets a person. Sealed members of events and records need none: they are unreadable once the keys are
 * gone. `bin/upkeep/erasers.ts` runs all, after the keys. Source: design §5.
 */
export interface Eraser {
  /** The tables that it cleans: every table is in one eraser, or known to hold nothing of anybody. */
  tables: readonly string[];
  /** Whether a row of these tables names the person. */
  names(person: Person, services: ErasureServices): Promise<boolean>;
  /**
   * Run twice it does the same.
   * @returns what it did, as the operator is told; null when there is nothing to tell of such a person
   */
  erase(person: Person, services: ErasureServices): Promise<string | null>;
}

/** Result of erasing persons from the chats of all accounts. */
export interface ErasedChats {
  /** Keyed hashes of the persons, by which the rest is erased. */
  hashes: string[];
  /** Profiles of the persons and cooldowns of their refreshes, of all accounts. */
  erased_profiles: number;
  deleted_messages: number;
  /** Accounts in whose chats they wrote. */
  account_ids: string[];
}

/**
 * Erasure of a person from a read model over a topic: afterwards its rows must equal those that a rebuild makes of the
 * erased records.
 */
export interface RecordEraser {
  projection: string;
  topic: string;
  tables: readonly string[];
  /** Makes the rows of these records what a rebuild would make of them now. Returns how many rows changed. */
  erase(tx: Queryable, records: readonly LoggedRecord[]): Promise<number>;
  /**
   * Data of the channel messages that these records led to, as it is without the person; by record id. Called after
   * `erase`.
   */
  messages(tx: Queryable, record_ids: readonly string[]): Promise<Map<string, string>>;
}
