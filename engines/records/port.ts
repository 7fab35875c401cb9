import type { RecordEnvelope, Topic } from '../../domain/records';
import type { BrokerRecord, Ends } from '../broker/port';

/** A record as projectors see it: the envelope in clear but for the person's name, and where it lies. */
export interface LoggedRecord extends RecordEnvelope {
  /** Hash of the person whose key encrypts `raw`; of records of builds before, the person in clear. */
  subject: string | null;
  /** Hashes of everybody else whose key it takes to read `raw`. */
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
  /** The event's own: the same each time it is relayed. */
  id: string;
  stream: string;
  revision: number;
  type: string;
  /** Of the data; each type begins at 1. */
  version: number;
  /** JSON text; null when the event is larger than a record may be. */
  data: string | null;
  metadata: Readonly<Record<string, string>>;
  /** RFC 3339 UTC. */
  recorded_at: string;
}

/**
 * A state of a dead letter as outside consumers read it. Personal parts are as unreadable as in the topic that the
 * record came from.
 */
export interface RelayedDeadLetter {
  /** Of this state of the letter: the same each time it is relayed. */
  id: string;
  letter_id: number;
  /** parked, retried, dropped */
  status: string;
  attempts: number;
  projection: string;
  /** poison, undecodable, blocked */
  reason: string;
  /** Kind of the failure. What went wrong in full may quote the data: it stays in the table. */
  error: string;
  /** Where the record lies: topic, partition and offset; of a domain event the position is the event store's. */
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
   * Durable when it resolves, with where the records lie. Keyed by account: one account's records keep the order of the
   * calls.
   */
  append(topic: Topic, records: readonly RecordEnvelope[]): Promise<Ends>;
  /**
   * Whose personal parts each of these holds, as {@link SubjectKeys.hashesOf} has it; none for nobody's, undefined for
   * what cannot be decoded. Nothing is decrypted.
   */
  subjectsOf(records: readonly BrokerRecord[]): Promise<(readonly string[] | undefined)[]>;
  /** Decodes and decrypts many at once; order is kept, failures come apart. */
  decode(records: readonly BrokerRecord[]): Promise<{ records: LoggedRecord[]; undecodable: UndecodableRecord[] }>;
}
