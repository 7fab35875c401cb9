import type { EventBatch, EventStore } from '../../engines/event-store/port';
import type { EventProjection } from '../../kernel/projection';
import { BEGINNING } from './checkpoints';
import type { Commits } from './commits';
import type { Item } from './dead-letters';
import type { Drive, Life } from './life';
import { askedTypes, NewerEventMet, takenFrom } from './newer';
import { openToDrive, type OpeningDeps } from './opening';

export interface EventDriverDeps extends OpeningDeps {
  events: EventStore;
  batch_events: number;
}

/** A checkpoint over other event types alone is written at most this often. */
const IDLE_MOVE_MS = 1000;

/**
 * Follows the domain events from the projection's checkpoint on.
 * @throws EngineMismatch, Outdated, Superseded
 */
export async function driveEvents(
  deps: EventDriverDeps,
  p: EventProjection,
  commits: Commits,
  life: Life,
): Promise<Drive> {
  const { events, batch_events } = deps;
  const { position } = (await openToDrive(deps, p, commits.silence)).get(0)!;
  const follower = new EventFollower(events.id, p, commits, life, position);
  const subscription = events.subscribe(
    { after: position === BEGINNING ? null : position, types: askedTypes(p), batch_size: batch_events },
    (batch) => follower.take(batch),
  );
  return {
    done: subscription.done,
    stop: async () => {
      follower.rest();
      await subscription.stop();
      follower.rest();
    },
  };
}

/** Takes pages of events in one life, and moves the checkpoint past them. */
class EventFollower {
  private seen: string;
  private moved_at = 0;
  private idle: NodeJS.Timeout | undefined;
  /** Batches and idle moves take turns: both compare against `stored`. */
  private turn: Promise<void> = Promise.resolve();

  constructor(
    private readonly engine: string,
    private readonly p: EventProjection,
    private readonly commits: Commits,
    private readonly life: Life,
    /** Where the checkpoint stands. */
    private stored: string,
  ) {
    this.seen = stored;
  }

  take(batch: EventBatch): Promise<void> {
    return this.inTurn(() => this.follow(batch));
  }

  /** Moves the checkpoint over other types no more. */
  rest(): void {
    clearTimeout(this.idle);
  }

  /** After a failure no turn comes any more: the next life begins at the stored checkpoint. */
  private inTurn(work: () => Promise<void>): Promise<void> {
    return (this.turn = this.turn.then(work));
  }

  private async follow(batch: EventBatch): Promise<void> {
    const { p, commits, life } = this;
    const { events: mine, newer } = takenFrom(p, batch.events);
    // Up to the last event before it: that one is where a newer build begins.
    this.seen = newer ? (mine.at(-1)?.position ?? this.stored) : batch.position;
    const items = mine.map((event): Item => ({ kind: 'event', event }));
    const ends_silence = commits.silence.endsAt(0, this.seen);
    if (items.length > 0 || ends_silence || performance.now() - this.moved_at > IDLE_MOVE_MS) {
      if (this.seen !== this.stored) await this.move(this.seen, items, mine.at(-1)?.recorded_at ?? null);
      if (!newer) return;
    }
    if (newer) throw new NewerEventMet(`projection ${p.name}`, this.stored, newer);
    commits.advanced(life, [{ partition: 0, to: this.seen }], null);
    this.idle ??= setTimeout(() => this.moveIdle(), IDLE_MOVE_MS);
  }

  private moveIdle(): void {
    const { life } = this;
    this.idle = undefined;
    this.inTurn(async () => {
      if (this.seen !== this.stored && !life.over && !life.left) await this.move(this.seen, [], null);
    }).catch((error: unknown) => life.interrupt(error));
  }

  private async move(to: string, items: Item[], at: string | null): Promise<void> {
    const moves = [{ partition: 0, from: this.stored, to }];
    await this.life.during(this.commits.commit(this.life, this.engine, at, { items, undecodable: [], moves }));
    this.stored = to;
    this.moved_at = performance.now();
  }
}
