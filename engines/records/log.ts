import { ERASED_RAW, type RecordEnvelope, SAME_RAW } from '../../domain/common/records';
import type { Broker, BrokerRecord, Ends, NewRecord } from '../broker/port';
import type { SubjectKey, SubjectKeys } from '../../privacy/subject-keys/port';
import { combined, decrypt, encrypt } from './cipher';
import { namesOthers, PERSONS_HEADER, personsHeader, personsIn, personsOf } from './persons';
import type { LoggedRecord, RecordLog, UndecodableRecord } from './port';
import { OWN_IDS, SCHEMA_HEADER, type SchemaIds } from './schema-ids';
import {
  createEnvelopeCodec,
  type EnvelopeCodec,
  HEAD_BYTES,
  type OptionalMember,
  WRITTEN_SCHEMA_ID,
  type WrittenEnvelope,
} from './schemas';

export interface RecordLogOptions {
  broker: Broker;
  subject_keys: SubjectKeys;
  /** Default: the schemas of the repository. */
  codec?: EnvelopeCodec;
  /** Default: the ids of the repository. */
  schema_ids?: SchemaIds;
  /**
   * Also writes a record's traceparent into the broker's headers, for consumers that do not read the envelope. Default
   * false.
   */
  trace_headers?: boolean;
}

/**
 * The record log over any broker. `raw` of a record about a person is encrypted under that person's key and bound to
 * the record and the account; after the erasure of the key it reads as {@link ERASED_RAW}. `raw` of a record about
 * several persons is encrypted under all of their keys together. A failing key store fails the call, so that a failure
 * never reads as an erasure.
 */
export function createRecordLog(options: RecordLogOptions): RecordLog {
  const { broker, subject_keys, codec = createEnvelopeCodec(), schema_ids = OWN_IDS, trace_headers = false } = options;
  const schema_header = schema_ids.foreign ? { [SCHEMA_HEADER]: String(WRITTEN_SCHEMA_ID) } : undefined;
  const turns = new PublishSequencer();

  function encoded(
    topic: string,
    records: readonly RecordEnvelope[],
    named_persons: readonly string[][],
    keys: ReadonlyMap<string, SubjectKey>,
  ): NewRecord[] {
    const wire_id = schema_ids.onWire(topic, WRITTEN_SCHEMA_ID);
    const hands_over = broker.handsOver?.(topic) ?? false;
    return records.map((record, place) => {
      const persons = named_persons[place]!.map((person) => keys.get(person)!);
      const value = codec.encode(named(record, persons, sealed(record, persons)), wire_id);
      const traced = trace_headers && record.trace !== null ? { traceparent: record.trace } : undefined;
      const optional = optionalHeaders(record);
      const others = namesOthers(record) ? { [PERSONS_HEADER]: personsHeader(persons) } : undefined;
      const headers =
        traced || schema_header || optional || others
          ? { ...schema_header, ...traced, ...optional, ...others }
          : undefined;
      const opened = hands_over && storedAsItIs(record) ? new Opened(named(record, persons, record.raw)) : undefined;
      return { key: record.account_id, value, opened, ...(headers && { headers }) };
    });
  }

  return {
    async append(topic, records) {
      const persons = records.map(personsOf);
      const subjects = persons.flat();
      const keys = schema_ids.foreign ? undefined : keysAtHand(subject_keys, subjects);
      // Fast path: the keys are cached and no append of these accounts waits.
      if (keys && turns.isFree(topic, records)) return broker.publish(topic, encoded(topic, records, persons, keys));
      return turns.inTurn(topic, records, async () => {
        const made = subjects.length > 0 ? await subject_keys.forWriting(subjects) : NO_KEYS;
        if (schema_ids.foreign) await schema_ids.ready();
        const values = encoded(topic, records, persons, made);
        return () => broker.publish(topic, values);
      });
    },

    async subjectsOf(records) {
      const subjects = records.map((record) => {
        const persons = personsIn(record.headers);
        if (persons !== null) return persons.map(({ hash }) => hash);
        try {
          const { subject } = codec.decode(record.value, schemaOf(record, schema_ids));
          return subject === null || subject === '' ? [] : [subject];
        } catch {
          return undefined;
        }
      });
      const in_clear = subjects.flatMap((persons) => persons?.filter(isClear) ?? []);
      if (in_clear.length === 0) return subjects;
      const hashes = await subject_keys.hashesOf(in_clear);
      return subjects.map((persons) => persons?.map((person) => hashes.get(person) ?? person));
    },

    async decode(records: readonly BrokerRecord[]) {
      const undecodable: UndecodableRecord[] = [];
      const opened: { record: BrokerRecord; envelope: WrittenEnvelope | Opened }[] = [];
      const key_ids = new Set<string>();
      for (const record of records) {
        try {
          const envelope =
            record.opened instanceof Opened ? record.opened : codec.decode(record.value, schemaOf(record, schema_ids));
          for (const { key_id } of personsIn(record.headers) ?? []) key_ids.add(key_id);
          if (envelope.key_id !== null) key_ids.add(envelope.key_id);
          opened.push({ record, envelope });
        } catch (error) {
          undecodable.push({ record, error: error as Error });
        }
      }
      const keys = key_ids.size > 0 ? await subject_keys.forReading([...key_ids]) : undefined;
      const decoded: LoggedRecord[] = [];
      for (const { record, envelope } of opened) {
        try {
          decoded.push(logged(record, envelope, keys));
        } catch (cause) {
          const error = new Error(`raw of record ${envelope.id} does not decrypt: ${(cause as Error).message}`, {
            cause,
          });
          undecodable.push({ record, error });
        }
      }
      return { records: decoded, undecodable };
    },
  };
}

const NO_KEYS: ReadonlyMap<string, SubjectKey> = new Map();

const keysAtHand = (keys: SubjectKeys, subjects: readonly string[]): ReadonlyMap<string, SubjectKey> | undefined =>
  subjects.length === 0 ? NO_KEYS : keys.atHand?.(subjects);

/** Sends the appends of one account to the broker in the order of their calls, also when some wait for a key. */
class PublishSequencer {
  /** Promise by topic and account that settles when the last append and all before it were sent or failed. */
  private readonly topics = new Map<string, Map<string, Promise<unknown>>>();

  /** Whether no earlier append of these accounts waits. */
  isFree(topic: string, records: readonly RecordEnvelope[]): boolean {
    const last = this.lastOf(topic);
    return last.size === 0 || records.every(({ account_id }) => !last.has(account_id));
  }

  async inTurn(
    topic: string,
    records: readonly RecordEnvelope[],
    prepare: () => Promise<() => Promise<Ends>>,
  ): Promise<Ends> {
    const last = this.lastOf(topic);
    const accounts = new Set<string>();
    const before = new Set<Promise<unknown>>();
    for (const { account_id } of records) {
      if (accounts.has(account_id)) continue;
      accounts.add(account_id);
      const earlier = last.get(account_id);
      if (earlier) before.add(earlier);
    }
    let gone!: () => void;
    const own = new Promise<void>((resolve) => (gone = resolve));
    // Also after a failure of this append, the next one must not overtake earlier ones that still wait.
    const turn = before.size === 0 ? own : Promise.all([...before, own]);
    for (const account_id of accounts) last.set(account_id, turn);
    void turn.then(() => {
      for (const account_id of accounts) if (last.get(account_id) === turn) last.delete(account_id);
    });
    let published: Promise<Ends>;
    try {
      const publish = await prepare();
      for (const earlier of before) await earlier;
      // The broker keeps the order of calls.
      published = publish();
    } finally {
      gone();
    }
    return published;
  }

  private lastOf(topic: string): Map<string, Promise<unknown>> {
    let last = this.topics.get(topic);
    if (!last) this.topics.set(topic, (last = new Map()));
    return last;
  }
}

/**
 * Headers instead of members of the envelope: a process of the previous release ignores them, but would reject a new
 * schema as a broken record. Few records have them.
 */
const SAME_RAW_HEADER = 'lumio-same-raw';
const FORMER_ID_HEADER = 'lumio-former-id';
const REPORTED_AT_HEADER = 'lumio-reported-at';
const SEEN_AT_HEADER = 'lumio-seen-at';
const CAUSE_HEADER = 'lumio-cause';
const DEPTH_HEADER = 'lumio-depth';

function optionalHeaders(record: RecordEnvelope): Record<string, string> | undefined {
  const { same_raw, former_id, reported_at, seen_at, cause, depth } = record;
  if ((same_raw ?? former_id ?? reported_at ?? seen_at ?? cause ?? depth) === undefined) return undefined;
  return {
    ...(same_raw !== undefined && { [SAME_RAW_HEADER]: same_raw }),
    ...(former_id !== undefined && { [FORMER_ID_HEADER]: former_id }),
    ...(reported_at !== undefined && { [REPORTED_AT_HEADER]: reported_at }),
    ...(seen_at !== undefined && { [SEEN_AT_HEADER]: seen_at }),
    ...(cause !== undefined && { [CAUSE_HEADER]: cause }),
    ...(depth !== undefined && { [DEPTH_HEADER]: String(depth) }),
  };
}

function optionalMembers(headers: BrokerRecord['headers']): Pick<RecordEnvelope, OptionalMember> {
  const same_raw = SAME_RAW.find((value) => value === headers[SAME_RAW_HEADER]);
  const former_id = headers[FORMER_ID_HEADER];
  const reported_at = headers[REPORTED_AT_HEADER];
  const seen_at = headers[SEEN_AT_HEADER];
  const cause = headers[CAUSE_HEADER];
  const depth = headers[DEPTH_HEADER];
  return {
    ...(same_raw !== undefined && { same_raw }),
    ...(former_id !== undefined && { former_id }),
    ...(reported_at !== undefined && { reported_at }),
    ...(seen_at !== undefined && { seen_at }),
    ...(cause !== undefined && { cause }),
    ...(depth !== undefined && { depth: Number(depth) }),
  };
}

/** Our id of the schema of a record; undefined when only the value can tell. */
function schemaOf({ headers, value }: BrokerRecord, schema_ids: SchemaIds): number | undefined {
  const named = headers[SCHEMA_HEADER];
  if (named !== undefined) return Number(named);
  return value.length < HEAD_BYTES ? undefined : schema_ids.ours(value.readInt32BE(1));
}

/** Whether a subject is in clear: older releases wrote `<vendor>:<id>`, and a hash has no colon. */
const isClear = (subject: string): boolean => subject.includes(':');

/** Decoded content of a record that this process wrote. */
class Opened {
  constructor(readonly record: RecordEnvelope & Pick<WrittenEnvelope, 'key_id'>) {}

  get id(): string {
    return this.record.id;
  }

  get key_id(): string | null {
    return this.record.key_id;
  }
}

/** Whether the encoded texts decode to the same texts: a lone surrogate would become U+FFFD. */
const storedAsItIs = ({ id, account_id, type, platform, external_id, raw }: RecordEnvelope) =>
  id.isWellFormed() &&
  account_id.isWellFormed() &&
  type.isWellFormed() &&
  platform.isWellFormed() &&
  (external_id === null || external_id.isWellFormed()) &&
  raw.isWellFormed();

function logged(
  record: BrokerRecord,
  written: WrittenEnvelope | Opened,
  keys: ReadonlyMap<string, Buffer> | undefined,
): LoggedRecord {
  const { key_id } = written;
  const envelope = written instanceof Opened ? written.record : written;
  const { id, account_id } = envelope;
  const persons = personsIn(record.headers);
  const found = (persons ?? (key_id === null ? [] : [{ key_id }])).map((person) => keys?.get(person.key_id));
  const erased = found.includes(undefined);
  let raw: string;
  if (erased) raw = ERASED_RAW;
  else if (written instanceof Opened) raw = written.record.raw;
  else raw = unsealed(written, found as Buffer[], persons !== null);
  const subjects = persons?.flatMap(({ hash }) => (hash === envelope.subject ? [] : [hash]));
  return {
    id,
    account_id,
    type: envelope.type,
    platform: envelope.platform,
    external_id: envelope.external_id,
    occurred_at: envelope.occurred_at,
    received_at: envelope.received_at,
    subject: envelope.subject,
    raw,
    trace: envelope.trace,
    topic: record.topic,
    partition: record.partition,
    offset: record.offset,
    ...(envelope.subject && key_id !== null && { subject_key: key_id }),
    ...(erased &&
      envelope.subject &&
      key_id !== null &&
      keys?.get(key_id) === undefined && { subject_erased: true as const }),
    ...(subjects && { subjects }),
    ...optionalMembers(record.headers),
  };
}

/** `raw` encrypted under the keys of the record's persons; in clear without persons. */
function sealed(record: RecordEnvelope, persons: readonly SubjectKey[]): Buffer {
  const [only] = persons;
  if (only === undefined) return Buffer.from(record.raw);
  if (!namesOthers(record)) return encrypt(record.raw, only.key, contextOf(record));
  return encrypt(record.raw, combined(persons.map(({ key }) => key)), contextOf(record), 2);
}

function unsealed(written: WrittenEnvelope, keys: readonly Buffer[], of_several: boolean): string {
  const [only] = keys;
  if (only === undefined) return written.raw.toString();
  return of_several
    ? decrypt(written.raw, combined(keys), contextOf(written), 2)
    : decrypt(written.raw, only, contextOf(written));
}

/** The stored form of a record, without names in clear. Copied by member, because copying whole objects is slower. */
function named<Raw extends Buffer | string>(
  record: RecordEnvelope,
  [first]: readonly SubjectKey[],
  raw: Raw,
): Omit<WrittenEnvelope, 'raw'> & { raw: Raw } {
  return {
    id: record.id,
    account_id: record.account_id,
    type: record.type,
    platform: record.platform,
    external_id: record.external_id,
    occurred_at: record.occurred_at,
    received_at: record.received_at,
    subject: record.subject ? first!.hash : null,
    key_id: first?.key_id ?? null,
    raw,
    trace: record.trace,
  };
}

const contextOf = ({ id, account_id }: { id: string; account_id: string }) => `${id} ${account_id}`;
