import { areaOf, type EventStore, type StoredEvent } from '../../../engines/event-store/port';
import type { Logger } from '../../../engines/log/port';
import type { Queryable } from '../../../engines/postgres/port';
import { pause } from '../../../lib/async/signal';
import { unreadableOf, type UnreadableEvent } from '../../../kernel/upcasters';
import type { EventProjection } from '../../../kernel/projection';
import { BEGINNING, readCheckpoints, type Reader } from '../checkpoint/checkpoints';
import { describe } from './failures';

/**
 * A projection has read an event of a type or version of a newer release. The event is not skipped: this release stops
 * there, and a newer one continues.
 */
export class EventFromNewerVersion extends Error {
  constructor(
    /** Name of the stopped projection or reactor. */
    name: string,
    /** Position of the checkpoint. */
    readonly at: string,
    event: UnreadableEvent,
  ) {
    super(`${name} needs a newer build: ${event.message}`);
    this.name = 'NewerEventMet';
  }
}

/** A projection or a reactor. */
type ReadsEvents = Pick<EventProjection, 'from'>;

/** Types to request from the event store: those with a handler, and all others of their areas. */
export const subscribedTypes = ({ from: { types } }: ReadsEvents): string[] => [
  ...new Set([...types, ...types.map(areaOf)]),
];

/**
 * Returns the projection's events of a page up to the first event that only a newer release can read, and that event.
 */
export function splitAtNewerEvent(
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

/**
 * Interval of the checks for a newer release's progress, and checks without a move after which that release counts as
 * gone.
 */
const LOOK_MS = 1000;
const GONE_LOOKS = 3;

/** Parameters of {@link waitForNewerVersionToStop}. */
export interface NewerBuildWatch {
  db: Queryable;
  events: Pick<EventStore, 'head' | 'compare'>;
  log: Logger;
  /** Projection or reactor left to a newer release, and the position of its checkpoint at that time. */
  place: Reader;
  at: string;
  /** Ends the watch. */
  stop: AbortSignal;
  /** Called when a newer release has moved the checkpoint. */
  onMoved(): void;
}

/**
 * Resolves when a newer release has moved the checkpoint and is gone: the checkpoint stands still although it is
 * behind.
 */
export async function waitForNewerVersionToStop(watch: NewerBuildWatch): Promise<void> {
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
