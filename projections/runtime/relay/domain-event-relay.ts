import { TOPICS } from '../../../domain/common/records';
import type { Upcasters } from '../../../kernel/upcasters';
import type { EventStore, StoredEvent } from '../../../engines/event-store/port';
import type { Database } from '../../../engines/postgres/port';
import type { RelayCodec, RelayedDomainEvent } from '../../../engines/records/port';
import { BEGINNING, moveCheckpoints, openCheckpoints, readCheckpoints } from '../checkpoint/checkpoints';
import { domainEvents } from '../../../kernel/projection';
import type { RelaySource } from './topic-relay';

export interface DomainEventRelayDeps {
  db: Database;
  /** Events in their stored form: personal members stay sealed. */
  stored_events: EventStore;
  upcasters: Upcasters;
  /** Id of the target broker. */
  broker_id: string;
  codec: RelayCodec;
}

/**
 * Relays every domain event, in commit order, keyed by its stream. The progress is a checkpoint that names both the
 * event store and the log: another log is filled from the first event on.
 */
export function domainEventRelay(deps: DomainEventRelayDeps): RelaySource {
  const { db, stored_events: events, codec, upcasters } = deps;
  const place = { name: `relay to ${deps.broker_id}`, version: 1, from: domainEvents([]) };
  let position = BEGINNING;
  /** Unreached end of the event store, and the time of its observation. */
  let mark: { head: string; seen_at: number } | undefined;
  const passed = (at: string, head: string) => at !== BEGINNING && events.compare(at, head) >= 0;

  return {
    name: 'domain-events',
    wakeup: 'events',
    async open() {
      position = (await openCheckpoints(db, place, events.id, [0], BEGINNING)).get(0)!.position;
    },
    async *waiting() {
      for await (const batch of events.readAll(position === BEGINNING ? null : position)) {
        const move = { partition: 0, from: position, to: batch.position };
        yield {
          topic: TOPICS.domain_events,
          records: batch.events.map((event) => ({
            key: event.stream,
            value: codec.domainEvent(relayedEvent(event, upcasters)),
          })),
          remember: (tx) => moveCheckpoints(tx, place, events.id, [move]),
        };
        position = batch.position;
      }
    },
    async lag() {
      const at = (await readCheckpoints(db, place)).get(0)?.position ?? BEGINNING;
      if (mark && passed(at, mark.head)) mark = undefined;
      const head = await events.head();
      if (head === null || passed(at, head)) return { behind: 0, seconds: 0 };
      mark ??= { head, seen_at: performance.now() };
      return { behind: 1, seconds: (performance.now() - mark.seen_at) / 1000 };
    },
  };
}

/**
 * An event for outside consumers: upcast to the newest version, or in its stored form when this program cannot read it.
 */
export function relayedEvent(event: StoredEvent, upcasters: Upcasters): RelayedDomainEvent {
  const { id, stream, revision, type, metadata, recorded_at } = event;
  const { version, data } = upcasters.unmarked(upcasters.read(event));
  return { id, stream, revision, type, version, data: JSON.stringify(data), metadata, recorded_at };
}
