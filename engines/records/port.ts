import type { RecordEnvelope, Topic } from '../../domain/records';
import type { BrokerRecord } from '../broker/port';

/** A record as projectors see it: the envelope in clear, and where it lies. */
export interface LoggedRecord extends RecordEnvelope {
  topic: string;
  partition: number;
  offset: number;
}

/** A record that could not be decoded: bad magic byte, unknown schema, broken Avro. */
export interface UndecodableRecord {
  record: BrokerRecord;
  error: Error;
}

/** The record log: envelopes in Avro (Confluent wire format), `raw` encrypted under the subject's key, over any broker. */
export interface RecordLog {
  /** Durable when it resolves. Keyed by account: one account's records keep their order. */
  append(topic: Topic, records: readonly RecordEnvelope[]): Promise<void>;
  /** Decodes and decrypts many at once; order is kept, failures come apart. */
  decode(records: readonly BrokerRecord[]): Promise<{ records: LoggedRecord[]; undecodable: UndecodableRecord[] }>;
}
