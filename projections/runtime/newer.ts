import { areaOf, type StoredEvent } from '../../engines/event-store/port';
import { unreadableOf, type UnreadableEvent } from '../../kernel/upcasters';
import type { EventProjection } from '../../kernel/projection';

/**
 * A projection came to an event of a type or version that a newer build wrote. It is not passed over: this build stops
 * there, and a newer one goes on.
 */
export class NewerEventMet extends Error {
  constructor(
    projection: string,
    /** Position that the checkpoint stands at. */
    readonly at: string,
    event: UnreadableEvent,
  ) {
    super(`projection ${projection} needs a newer build: ${event.message}`);
    this.name = 'NewerEventMet';
  }
}

/** Types to ask the event store for: those with a handler, and whatever else their areas hold. */
export const askedTypes = ({ from: { types } }: EventProjection): string[] => [
  ...new Set([...types, ...types.map(areaOf)]),
];

/**
 * What of a page is the projection's, up to the first event that only a newer build can read; that one beside it.
 */
export function takenFrom(
  { from: { types } }: EventProjection,
  page: readonly StoredEvent[],
): { events: StoredEvent[]; newer: UnreadableEvent | null } {
  const events: StoredEvent[] = [];
  for (const event of page) {
    const unreadable = unreadableOf(event);
    if (unreadable?.newer) return { events, newer: unreadable };
    if (types.includes(event.type)) events.push(event);
  }
  return { events, newer: null };
}
