import type { AreaReactor } from '../../app/reactor';
import { CannotReact } from '../../kernel/reactor';
import { Backoff } from '../../lib/async/retry';
import { pause, withTimeout } from '../../lib/async/signal';
import { domainEvents } from '../../kernel/projection';
import type { EventBatch, StoredEvent } from '../../engines/event-store/port';
import type { Logger } from '../../engines/log/port';
import type { Queryable } from '../../engines/postgres/port';
import {
  BEGINNING,
  CheckpointLost,
  moveCheckpoints,
  openCheckpoints,
  readCheckpoints,
  type Reader,
} from '../../projections/runtime/checkpoint/checkpoints';
import { laneOf, park, waitingLanes, type Parked } from '../../projections/runtime/dead-letter/dead-letters';
import { failureKind } from '../../kernel/failures';
import { describe } from '../../projections/runtime/drive/failures';
import {
  subscribedTypes,
  EventFromNewerVersion,
  splitAtNewerEvent,
  waitForNewerVersionToStop,
} from '../../projections/runtime/drive/newer-version';
import { CheckpointAdvancer } from '../../projections/runtime/outbox/checkpoint-advancer';
import { FailedTries, isOfEvent } from './failed-tries';
import { readsWritten, type Write } from './kept-writes';
import type { ReactorMetrics } from './metrics';
import { toolsFor, type ToolsDeps } from './tools';

export interface ReactorRunnerDeps extends ToolsDeps {
  log: Logger;
  metrics: ReactorMetrics;
  /** Longest pause between attempts of a failing reaction. */
  backoff_ms: number;
  /** Longest time of a reaction; a longer one has failed. */
  reaction_ms: number;
  /** Failed attempts of one event after which it is parked with its lane. */
  tries: number;
  /** Shortest time from the first failed try of an event to its parking. */
  park_after_ms: number;
}

/**
 * `standby`: another process runs it; `failing`: a reaction fails and is retried, and no later event is processed;
 * `needs_newer_build`: at an event that this release cannot read.
 */
export const REACTOR_STATES = ['standby', 'running', 'failing', 'needs_newer_build'] as const;
export type ReactorState = (typeof REACTOR_STATES)[number];

/** Reader that identifies the checkpoint of a reactor. */
export const readerOf = ({ name, types }: Pick<AreaReactor, 'name' | 'types'>): Reader => ({
  name: `reactor:${name}`,
  version: 1,
  from: domainEvents(types),
});

const FIRST_BACKOFF_MS = 100;
const BATCH_EVENTS = 100;
/** See {@link CheckpointAdvancer}. */
const IDLE_MOVE_MS = 5000;

/**
 * Runs one reactor while this process holds it: reacts event by event, and writes the kept writes together with the
 * checkpoint. A failing reaction is retried with growing pauses and blocks later events. A declared data error, or an
 * event without attempts left, is parked with the following events of its account; other accounts continue.
 */
export class ReactorRunner {
  state: ReactorState = 'standby';
  /** Error that blocks the reactor; null while it runs. */
  error: string | null = null;
  /** Lag in seconds, as last observed. */
  lag_seconds = 0;
  private readonly place: Reader;
  private readonly reads: { from: { kind: 'domain_events'; types: readonly string[] } };
  private moves = this.movesFrom(BEGINNING);
  private behind_since: number | null = null;
  private readonly failed: FailedTries;
  /** Commits after each event, because a write that fails must be attributed to its event. */
  private one_by_one = false;

  constructor(
    readonly reactor: AreaReactor,
    private readonly deps: ReactorRunnerDeps,
  ) {
    this.place = readerOf(reactor);
    this.reads = { from: domainEvents(reactor.types) };
    this.failed = new FailedTries(deps.tries, deps.park_after_ms);
  }

  /** Stores the reactor's start position, once per installation, whether or not this process will run it. */
  async install(): Promise<void> {
    const { db, events } = this.deps;
    const first = this.reactor.from === 'now' ? ((await events.head()) ?? BEGINNING) : BEGINNING;
    await openCheckpoints(db, this.place, events.id, [0], first);
  }

  /** Runs until `signal` is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, metrics, backoff_ms } = this.deps;
    const label = { reactor: this.reactor.name };
    const backoff = new Backoff({ first_ms: FIRST_BACKOFF_MS, most_ms: backoff_ms });
    while (!signal.aborted) {
      try {
        await this.follow(signal, () => backoff.reset());
      } catch (error) {
        if (signal.aborted) break;
        if (error instanceof EventFromNewerVersion) return this.leave(error);
        const pause_ms = backoff.next();
        if (error instanceof CheckpointLost) {
          log.warn(label, 'another process has moved the checkpoint of this reactor');
        } else {
          this.state = 'failing';
          this.error = describe(error);
          metrics.failures.inc(1, label);
          const facts = { ...label, err: this.error, failures: backoff.failures };
          if (['data', 'bug'].includes(failureKind(error))) log.error(facts, 'a reaction failed; it is tried again');
          else log.warn(facts, 'a reaction waits for an engine');
        }
        await pause(pause_ms, signal);
      }
    }
    this.state = 'standby';
    this.error = null;
  }

  /** Called with the checkpoint's position when only a newer release can continue. */
  onNewer: (at: string) => void = () => undefined;

  private leave({ at, message }: EventFromNewerVersion): void {
    this.state = 'needs_newer_build';
    this.error = message;
    this.deps.log.error({ reactor: this.reactor.name }, message);
    this.onNewer(at);
  }

  /** Resolves when a newer release has read past `at` and has stopped. */
  async waitForNewerVersionToStop(at: string, stop: AbortSignal): Promise<void> {
    const onMoved = () => {
      this.state = 'standby';
      this.error = null;
    };
    await waitForNewerVersionToStop({ ...this.deps, place: this.place, at, stop, onMoved });
  }

  /** Runs one subscription until it ends. */
  private async follow(signal: AbortSignal, onProgress: () => void): Promise<void> {
    const { db, events } = this.deps;
    await this.install();
    const stored = (await readCheckpoints(db, this.place)).get(0)!.position;
    const moves = (this.moves = this.movesFrom(stored));
    if (this.state === 'standby') this.state = 'running';
    // Subscribes to all types of the same areas: an unknown one requires a newer release.
    const types = subscribedTypes(this.reads);
    const subscription = events.subscribe(
      { after: stored === BEGINNING ? null : stored, types, batch_size: BATCH_EVENTS },
      async (batch) => {
        if (signal.aborted) return;
        await moves.inTurn(() => this.react(batch, signal));
        this.state = 'running';
        this.error = null;
        onProgress();
      },
    );
    const over = new AbortController();
    try {
      await Promise.race([subscription.done, pause(Infinity, AbortSignal.any([signal, over.signal]))]);
    } finally {
      over.abort();
      await subscription.stop();
      moves.rest();
      await moves.ended();
    }
    if (!signal.aborted) throw new Error(`the reactor ${this.reactor.name}: its subscription ended by itself`);
  }

  private movesFrom(stored: string): CheckpointAdvancer {
    return new CheckpointAdvancer(stored, {
      idle_ms: IDLE_MOVE_MS,
      moveIdle: (to) => this.commit(to, [], []),
      // The next batch fails too and reports a lasting failure.
      onFailure: (error) =>
        this.deps.log.debug({ reactor: this.reactor.name, err: describe(error) }, 'an idle checkpoint did not move'),
    });
  }

  private async react(batch: EventBatch, signal: AbortSignal): Promise<void> {
    const { db, metrics } = this.deps;
    const label = { reactor: this.reactor.name };
    const { events, newer } = splitAtNewerEvent(this.reads, batch.events);
    let kept: Write[] = [];
    let parked: Parked[] = [];
    let lost: { error: unknown } | undefined;
    const { moves } = this;
    let done = moves.stored;
    const flush = async (to: string) => {
      if (to === moves.stored) return;
      try {
        await this.commit(to, kept, parked);
      } catch (error) {
        this.one_by_one ||= isOfEvent(error);
        lost = { error };
        throw error;
      }
      [kept, parked] = [[], []];
    };
    const waiting = events.length === 0 ? new Set<string>() : await waitingLanes(db, this.place, events);

    for (const event of events) {
      // Stores the progress so far; the next process continues from there.
      if (signal.aborted) return flush(done);
      if (waiting.has(laneOf(event))) {
        parked.push(blocked(event));
      } else {
        try {
          const writes = await this.writesOf(event, async (query) => {
            if (readsWritten(query, kept)) await flush(done);
          });
          // Applies even when the reaction has caught the error.
          if (lost !== undefined) throw lost.error;
          if (this.one_by_one) {
            await this.commit(event.position, writes, parked);
            parked = [];
          } else kept.push(...writes);
          this.failed.succeeded();
        } catch (error) {
          if (lost !== undefined) throw lost.error;
          if (!(await this.mayPark(event, error))) {
            await flush(done);
            throw error;
          }
          waiting.add(laneOf(event));
          parked.push({ item: { kind: 'event', event }, reason: 'poison', error: describe(error) });
        }
      }
      done = event.position;
      metrics.reactions.inc(1, label);
    }
    if (newer) {
      await flush(done);
      throw new EventFromNewerVersion(`reactor ${this.reactor.name}`, moves.stored, newer);
    }
    moves.seen = batch.position;
    if (events.length > 0 || moves.due) await flush(batch.position);
    else moves.later();
    this.one_by_one = false;
  }

  private async commit(to: string, kept: readonly Write[], parked: readonly Parked[]): Promise<void> {
    const { db, events, jobs, log, metrics } = this.deps;
    const from = this.moves.stored;
    await db.transaction(async (tx) => {
      await moveCheckpoints(tx, this.place, events.id, [{ partition: 0, from, to }]);
      for (const write of kept) await write.run(tx);
      await this.stillWaiting(tx, parked);
      await park(tx, this.place, parked, { rebuilding: false });
    });
    if (kept.some(({ wakes }) => wakes)) jobs.wake();
    this.moves.moved(to);
    if (parked.length > 0) {
      metrics.parked.inc(parked.length, { reactor: this.reactor.name });
      log.error({ reactor: this.reactor.name, parked: parked.length }, 'events parked as dead letters of a reactor');
    }
  }

  /** Runs one reaction and returns its kept writes. */
  private async writesOf(event: StoredEvent, before: (query: string) => Promise<void>): Promise<Write[]> {
    const writes: Write[] = [];
    const over = new AbortController();
    const tools = toolsFor(this.deps, this.reactor.name, event, writes, before, over.signal);
    await inTime(this.reactor.react(event, tools), this.deps.reaction_ms, this.reactor.name, over);
    return writes;
  }

  /** True when the event is to be parked. @throws when the event store does not answer, which is then the cause */
  private async mayPark(event: StoredEvent, error: unknown): Promise<boolean> {
    if (error instanceof CannotReact) return true;
    if (!this.failed.exhausted(event.id, error)) return false;
    const { events, reaction_ms } = this.deps;
    await withTimeout(events.head(), reaction_ms, () => new Error('the event store did not answer in time'));
    this.failed.parked();
    return true;
  }

  /** Refuses to park an event behind a lane that was freed meanwhile, because nothing would retry it. */
  private async stillWaiting(tx: Queryable, parked: readonly Parked[]): Promise<void> {
    const eventsOf = (reason: Parked['reason']) =>
      parked.flatMap((one) => (one.reason === reason && one.item.kind === 'event' ? [one.item.event] : []));
    const heads = new Set(eventsOf('poison').map(laneOf));
    const behind = eventsOf('blocked').filter((event) => !heads.has(laneOf(event)));
    if (behind.length === 0) return;
    const waiting = await waitingLanes(tx, this.place, behind);
    if (behind.some((event) => !waiting.has(laneOf(event)))) throw new CheckpointLost(this.place.name, []);
  }

  /** Updates the lag. */
  async observe(): Promise<void> {
    const { db, events } = this.deps;
    const [head, stored] = await Promise.all([events.head(), readCheckpoints(db, this.place)]);
    const at = this.state === 'standby' ? (stored.get(0)?.position ?? BEGINNING) : this.moves.seen;
    const behind = head !== null && (at === BEGINNING || events.compare(head, at) > 0);
    const now = performance.now();
    this.behind_since = behind ? (this.behind_since ?? now) : null;
    this.lag_seconds = this.behind_since === null ? 0 : (now - this.behind_since) / 1000;
  }
}

const blocked = (event: StoredEvent): Parked => ({
  item: { kind: 'event', event },
  reason: 'blocked',
  error: `an earlier event of ${laneOf(event)} is parked`,
});

/**
 * Limits the time of a reaction. An abandoned one writes nothing: its tools end with `over`, and its kept writes are
 * dropped.
 */
async function inTime(reaction: Promise<void>, ms: number, reactor: string, over: AbortController): Promise<void> {
  await withTimeout(reaction, ms, () => {
    const error = new ReactionTimeout(`a reaction of ${reactor} did not end within ${ms} ms`);
    over.abort(error);
    return error;
  });
}

/** Classified as an unavailable engine, because a reaction waits for engines alone. */
class ReactionTimeout extends Error {
  override readonly name = 'TimeoutError';
}
