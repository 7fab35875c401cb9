import type { EventDeclaration } from '../../../kernel/event';
import type { Json, JsonObject } from '../../../lib/json/json';
import { decrypt, encrypt } from '../../records/cipher';
import type { SubjectKeys } from '../../../privacy/subject-keys/port';
import { openCallerIps, personOf, sealCallerIp } from './caller-ip';
import { delegated } from './delegated';
import type { EventBatch, EventFilter, EventStore, Metadata, NewEvent, StoredEvent, StreamWrite } from '../port';

/** Stored form of a personal member: AES-256-GCM in base64 under the subject's key, bound to its event. */
interface Sealed extends JsonObject {
  $sealed: string;
  $key: string;
}

const isSealed = (value: Json | undefined): value is Sealed =>
  typeof value === 'object' && value !== null && '$sealed' in value && '$key' in value;

/** Encrypts and decrypts the personal members of domain events. Design §5. */
export interface Sealing {
  /** The stored form of an append: personal members encrypted, the hashes of their persons in the metadata. */
  seal(writes: readonly StreamWrite[], metadata: Metadata): Promise<Parameters<EventStore['append']>>;
  /**
   * Events with their personal members in clear; null where the subject's key was erased. `stored` keeps the encrypted
   * data. With `ips` the callers' addresses too.
   * @throws Error when the key store does not answer, so that an outage never reads as an erasure
   */
  open(events: readonly StoredEvent[], wanted?: Pick<EventFilter, 'ips'>): Promise<StoredEvent[]>;
}

/** @param declared declarations by type; only their personal members are read */
export function createSealing(
  declared: ReadonlyMap<string, Pick<EventDeclaration, 'personal'>>,
  keys: SubjectKeys,
): Sealing {
  const personal = new Map(
    [...declared].flatMap(([type, one]) => {
      const members = Object.entries(one.personal);
      return members.length === 0 ? [] : [[type, members] as const];
    }),
  );

  /** The members to encrypt, each with the subject of its key. */
  function wanted({ type, data }: NewEvent): (readonly [member: string, subject: string])[] {
    return (personal.get(type) ?? []).flatMap(([member, subjectOf]) => {
      const subject = subjectOf(data);
      return data[member] === undefined || data[member] === null || subject === null ? [] : [[member, subject]];
    });
  }

  return {
    async seal(writes, clear) {
      const metadata = await sealCallerIp(keys, clear);
      const subjects = writes.flatMap(({ events }) => events.flatMap((event) => wanted(event).map(([, one]) => one)));
      const actor = clear['ip'] === undefined ? undefined : personOf(clear)?.subject;
      const persons = new Set(actor === undefined ? subjects : [...subjects, actor]);
      if (persons.size === 0) return [writes, metadata];
      const found = await keys.forWriting([...persons]);
      const named = { ...metadata, subjects: [...persons].map((person) => found.get(person)!.hash).join(',') };
      const sealed = (event: NewEvent): NewEvent => {
        const members = wanted(event).map(([member, subject]): [string, Sealed] => {
          const { key, key_id } = found.get(subject)!;
          const cipher = encrypt(JSON.stringify(event.data[member]), key, event.id);
          return [member, { $sealed: cipher.toString('base64'), $key: key_id }];
        });
        return members.length === 0 ? event : { ...event, data: { ...event.data, ...Object.fromEntries(members) } };
      };
      return [writes.map((write) => ({ ...write, events: write.events.map(sealed) })), named];
    },

    async open(stored, { ips = false } = {}) {
      const events = ips ? await openCallerIps(keys, stored) : stored;
      const parts = events.map(({ type, data }) =>
        (personal.get(type) ?? []).flatMap(([member]) => {
          const value = data[member];
          return isSealed(value) ? [[member, value] as const] : [];
        }),
      );
      const key_ids = parts.flatMap((members) => members.map(([, { $key }]) => $key));
      if (key_ids.length === 0) return [...events];
      const found = await keys.forReading(key_ids);
      return events.map((event, index) => {
        const members = parts[index]!;
        if (members.length === 0) return event;
        const clear = members.map(([member, { $sealed, $key }]): [string, Json] => {
          const key = found.get($key);
          if (key === undefined) return [member, null];
          return [member, JSON.parse(decrypt(Buffer.from($sealed, 'base64'), key, event.id)) as Json];
        });
        return {
          ...event,
          data: { ...event.data, ...Object.fromEntries(clear) },
          stored: event.stored ?? event.data,
          personal: true,
        };
      });
    },
  };
}

/** Decorates an event store so that callers read and write personal members in clear. */
export function sealedEventStore(store: EventStore, sealing: Sealing): EventStore {
  const opened = async ({ events, position }: EventBatch, filter?: EventFilter): Promise<EventBatch> => ({
    events: await sealing.open(events, filter),
    position,
  });
  return {
    ...delegated(store),
    append: async (writes, metadata) => store.append(...(await sealing.seal(writes, metadata))),
    read: async (stream, from, options) => sealing.open(await store.read(stream, from, options), options),
    async *readAll(after, filter) {
      for await (const batch of store.readAll(after, filter)) yield await opened(batch, filter);
    },
    subscribe: (options, onBatch) => store.subscribe(options, async (batch) => onBatch(await opened(batch, options))),
  };
}
