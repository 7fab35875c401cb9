import { areaOf, type EventStore, type StoredEvent } from '../../engines/event-store/port';
import type { Logger } from '../../engines/log/port';
import type { Queryable } from '../../engines/postgres/port';
import { pause } from '../../kernel/signal';
import { unreadableOf, type UnreadableEvent } from '../../kernel/upcasters';
import type { EventProjection } from '../../kernel/projection';
import { BEGINNING, readCheckpoints, type Reader } from './checkpoints';
import { describe } from './failures';

/**
 * A projection came to an event of a type or version that a newer build wrote. It is not passed over: this build stops
 * there, and a newer one goes on.
 */
export class NewerEventMet extends Error {
  constructor(
    /** What stands there: a projection, or a reactor. */
    name: string,
    /** Position that the checkpoint stands at. */
    readonly at: string,
    event: UnreadableEvent,
  ) {
    super(`${name} needs a newer build: ${event.message}`);
    this.name = 'NewerEventMet';
  }
}

/** A projection or a reactor. */
type ReadsEvents = Pick<EventProjection, 'from'>;

/** Types to ask the event store for: those with a handler, and whatever else their areas hold. */
export const askedTypes = ({ from: { types } }: ReadsEvents): string[] => [
  ...new Set([...types, ...types.map(areaOf)]),
];

/**
 * What of a page is the projection's, up to the first event that only a newer build can read; that one beside it.
 */
export function takenFrom(
  { from: { types } }: ReadsEvents,
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

/** How often it is looked whether a newer build has read on, and how many looks without a move say that it is gone. */
const LOOK_MS = 1000;
const GONE_LOOKS = 3;

/** What {@link untilNewerBuildIsGone} looks at. */
export interface NewerBuildWatch {
  db: Queryable;
  events: Pick<EventStore, 'head' | 'compare'>;
  log: Logger;
  /** What was left to a newer build, and where its checkpoint stood. */
  place: Reader;
  at: string;
  /** Ends the watch. */
  stop: AbortSignal;
  /** A newer build has read on. */
  onMoved(): void;
}

/** Resolves when a newer build has read on from there, and is gone: it stands still although it is behind. */
export async function untilNewerBuildIsGone(watch: NewerBuildWatch): Promise<void> {
  const { db, events, log, place, at, stop, onMoved } = watch;
  let before: string | undefined;
  for (let stood = 0; stood < GONE_LOOKS && !stop.aborted;) {
    await pause(LOOK_MS, stop);
    try {
      const position = (await readCheckpoints(db, place)).get(0)?.position ?? BEGINNING;
      if (position === at) continue;
      onMoved();
      const head = await events.head();
      const behind = head !== null && (position === BEGINNING || events.compare(head, position) > 0);
      stood = behind && position === before ? stood + 1 : 0;
      before = position;
    } catch (error) {
      log.warn({ name: place.name, err: describe(error) }, 'could not look for a newer build');
    }
  }
}
