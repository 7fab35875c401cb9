import type { EventBatch, EventStore } from '../../../engines/event-store/port';
import type { EventProjection } from '../../../kernel/projection';
import { BEGINNING } from '../checkpoint/checkpoints';
import type { Commits } from '../checkpoint/commits';
import type { Item } from '../dead-letter/dead-letters';
import type { Subscription, ConsumerRun } from './consumer-run';
import { subscribedTypes, EventFromNewerVersion, splitAtNewerEvent } from './newer-version';
import { openToDrive, type OpeningDeps } from './checkpoint-init';
import { CheckpointAdvancer } from '../outbox/checkpoint-advancer';

export interface EventDriverDeps extends OpeningDeps {
  events: EventStore;
  batch_events: number;
}

/** See {@link CheckpointAdvancer}. */
const IDLE_MOVE_MS = 1000;

/**
 * Follows the domain events from the projection's checkpoint on.
 * @throws EngineMismatch, Outdated, Superseded
 */
export async function driveEvents(
  deps: EventDriverDeps,
  p: EventProjection,
  commits: Commits,
  life: ConsumerRun,
): Promise<Subscription> {
  const { events, batch_events } = deps;
  const { position } = (await openToDrive(deps, p, commits.silence)).get(0)!;
  const follower = new EventFollower(events.id, p, commits, life, position);
  const subscription = events.subscribe(
    { after: position === BEGINNING ? null : position, types: subscribedTypes(p), batch_size: batch_events },
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

/** Processes pages of events in one run, and moves the checkpoint past them. */
class EventFollower {
  private readonly place: CheckpointAdvancer;

  constructor(
    private readonly engine: string,
    private readonly p: EventProjection,
    private readonly commits: Commits,
    private readonly life: ConsumerRun,
    stored: string,
  ) {
    this.place = new CheckpointAdvancer(stored, {
      idle_ms: IDLE_MOVE_MS,
      moveIdle: async (to) => {
        if (!life.over && !life.left) await this.move(to, [], null);
      },
      onFailure: (error) => life.interrupt(error),
    });
  }

  take(batch: EventBatch): Promise<void> {
    return this.place.inTurn(() => this.follow(batch));
  }

  rest(): void {
    this.place.rest();
  }

  private async follow(batch: EventBatch): Promise<void> {
    const { p, commits, life, place } = this;
    const { events: mine, newer } = splitAtNewerEvent(p, batch.events);
    // Up to the last event before the unreadable one, where a newer release begins.
    const seen = newer ? (mine.at(-1)?.position ?? place.stored) : batch.position;
    place.seen = seen;
    const items = mine.map((event): Item => ({ kind: 'event', event }));
    if (items.length > 0 || commits.silence.endsAt(0, seen) || place.due) {
      if (seen !== place.stored) await this.move(seen, items, mine.at(-1)?.recorded_at ?? null);
      if (!newer) return;
    }
    if (newer) throw new EventFromNewerVersion(`projection ${p.name}`, place.stored, newer);
    commits.advanced(life, [{ partition: 0, to: seen }], null);
    place.later();
  }

  private async move(to: string, items: Item[], at: string | null): Promise<void> {
    const moves = [{ partition: 0, from: this.place.stored, to }];
    await this.life.during(this.commits.commit(this.life, this.engine, at, [{ items, undecodable: [], moves }]));
    this.place.moved(to);
  }
}
