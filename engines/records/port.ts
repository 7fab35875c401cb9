import type { RecordEnvelope, Topic } from '../../domain/common/records';
import type { BrokerRecord, Ends } from '../broker/port';

/** A record as projectors receive it: the decrypted envelope, with the subject as a hash, and its offset. */
export interface LoggedRecord extends RecordEnvelope {
  /** Hash of the person whose key encrypts `raw`; in records of older releases the person in clear. */
  subject: string | null;
  /** Id of the subject's key, erased or not; absent without a subject. */
  subject_key?: string;
  /** True when `raw` reads as erased since the subject's own key is gone; absent when it is another person's. */
  subject_erased?: true;
  /** Hashes of the other persons whose keys are needed to read `raw`. */
  subjects?: readonly string[];
  topic: string;
  partition: number;
  offset: number;
}

/** A record that could not be decoded: bad magic byte, unknown schema, broken Avro. */
export interface UndecodableRecord {
  record: BrokerRecord;
  error: Error;
}

/** A domain event as outside consumers read it. */
export interface RelayedDomainEvent {
  /** The event's id: the same each time the event is relayed. */
  id: string;
  stream: string;
  revision: number;
  type: string;
  /** Version of the data; each type begins at 1. */
  version: number;
  /** JSON text; null when the event is larger than a record may be. */
  data: string | null;
  metadata: Readonly<Record<string, string>>;
  /** RFC 3339 UTC. */
  recorded_at: string;
}

/**
 * A state of a dead letter as outside consumers read it. Personal parts are encrypted as in the topic of the record.
 */
export interface RelayedDeadLetter {
  /** Id of this state of the letter: the same each time the state is relayed. */
  id: string;
  letter_id: number;
  /** parked, retried, dropped */
  status: string;
  attempts: number;
  projection: string;
  /** poison, undecodable, blocked */
  reason: string;
  /** Kind of the failure. The full error stays in the table, because it may quote the data. */
  error: string;
  /** Topic, partition and offset of the record; for a domain event the position is the event store's. */
  topic: string;
  partition: number;
  position: string;
  type: string | null;
  account_id: string | null;
  first_failed_at: string;
  last_failed_at: string;
  settled_at: string | null;
  record_key: string | null;
  /**
   * The record's value, byte for byte; null for a domain event, and when the letter would be larger than a record may
   * be.
   */
  record: Buffer | null;
  event: RelayedDomainEvent | null;
}

/** Values of the relayed topics. */
export interface RelayCodec {
  domainEvent(event: RelayedDomainEvent): Buffer;
  deadLetter(letter: RelayedDeadLetter): Buffer;
}

/**
 * The record log: envelopes in Avro (Confluent wire format), `raw` encrypted under the subject's key, over any broker.
 */
export interface RecordLog {
  /**
   * Durable when it resolves, with the ends of the records. Keyed by account, so that an account's records keep the
   * order of the calls.
   */
  append(topic: Topic, records: readonly RecordEnvelope[]): Promise<Ends>;
  /**
   * Hashes of the persons whose personal parts each record holds, as of {@link SubjectKeys.hashesOf}; empty without
   * persons, undefined for an undecodable record. Decrypts nothing.
   */
  subjectsOf(records: readonly BrokerRecord[]): Promise<(readonly string[] | undefined)[]>;
  /** Decodes and decrypts many records in their order; failures are returned separately. */
  decode(records: readonly BrokerRecord[]): Promise<{ records: LoggedRecord[]; undecodable: UndecodableRecord[] }>;
}
