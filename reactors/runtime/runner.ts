import type { AreaReactor } from '../../access/reactor';
import { CannotReact } from '../../kernel/reactor';
import { Backoff } from '../../kernel/retry';
import { pause, within } from '../../kernel/signal';
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
} from '../../projections/runtime/checkpoints';
import { park, waitingStreams, type Parked } from '../../projections/runtime/dead-letters';
import { failureKind } from '../../kernel/failures';
import { describe } from '../../projections/runtime/failures';
import { askedTypes, NewerEventMet, takenFrom, untilNewerBuildIsGone } from '../../projections/runtime/newer';
import { PlaceMoves } from '../../projections/runtime/place-moves';
import type { ReactorMetrics } from './metrics';
import { toolsFor, type ToolsDeps, type Write } from './tools';

export interface ReactorRunnerDeps extends ToolsDeps {
  log: Logger;
  metrics: ReactorMetrics;
  /** Longest pause between tries of a reaction that fails. */
  backoff_ms: number;
  /** A reaction that takes longer has failed. */
  reaction_ms: number;
}

/**
 * `standby`: another process drives it; `failing`: a reaction fails and is tried again, nothing after it is done;
 * `needs_newer_build`: at an event that this build cannot read.
 */
export const REACTOR_STATES = ['standby', 'running', 'failing', 'needs_newer_build'] as const;
export type ReactorState = (typeof REACTOR_STATES)[number];

/** How the checkpoint of a reactor is called. */
export const placeOf = ({ name, types }: Pick<AreaReactor, 'name' | 'types'>): Reader => ({
  name: `reactor:${name}`,
  version: 1,
  from: domainEvents(types),
});

const FIRST_BACKOFF_MS = 100;
const BATCH_EVENTS = 100;
/** See {@link PlaceMoves}. */
const IDLE_MOVE_MS = 5000;

/**
 * Drives one reactor while this process holds it: reacts event by event, and writes what was kept together with the
 * checkpoint. A reaction that fails is tried again with growing pauses, and nothing passes it; only a declared data
 * error is parked, with what follows in its stream.
 */
export class ReactorRunner {
  state: ReactorState = 'standby';
  /** Why it does not go on; null while it does. */
  error: string | null = null;
  /** Behind by this many seconds, as last observed. */
  lag_seconds = 0;
  private readonly place: Reader;
  private readonly reads: { from: { kind: 'domain_events'; types: readonly string[] } };
  private moves = this.movesFrom(BEGINNING);
  private behind_since: number | null = null;

  constructor(
    readonly reactor: AreaReactor,
    private readonly deps: ReactorRunnerDeps,
  ) {
    this.place = placeOf(reactor);
    this.reads = { from: domainEvents(reactor.types) };
  }

  /** Fixes where it begins, once for the installation, whether or not this process will drive it. */
  async install(): Promise<void> {
    const { db, events } = this.deps;
    const first = this.reactor.from === 'now' ? ((await events.head()) ?? BEGINNING) : BEGINNING;
    await openCheckpoints(db, this.place, events.id, [0], first);
  }

  /** Until `signal` is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, metrics, backoff_ms } = this.deps;
    const label = { reactor: this.reactor.name };
    const backoff = new Backoff({ first_ms: FIRST_BACKOFF_MS, most_ms: backoff_ms });
    while (!signal.aborted) {
      try {
        await this.follow(signal, () => backoff.reset());
      } catch (error) {
        if (signal.aborted) break;
        if (error instanceof NewerEventMet) return this.leave(error);
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

  /** Told where the checkpoint stands when only a newer build can go on. */
  onNewer: (at: string) => void = () => undefined;

  private leave({ at, message }: NewerEventMet): void {
    this.state = 'needs_newer_build';
    this.error = message;
    this.deps.log.error({ reactor: this.reactor.name }, message);
    this.onNewer(at);
  }

  /** Resolves when a newer build has read on from there, and is gone. */
  async untilNewerBuildIsGone(at: string, stop: AbortSignal): Promise<void> {
    const onMoved = () => {
      this.state = 'standby';
      this.error = null;
    };
    await untilNewerBuildIsGone({ ...this.deps, place: this.place, at, stop, onMoved });
  }

  /** One life of the subscription. */
  private async follow(signal: AbortSignal, onProgress: () => void): Promise<void> {
    const { db, events } = this.deps;
    await this.install();
    const stored = (await readCheckpoints(db, this.place)).get(0)!.position;
    const moves = (this.moves = this.movesFrom(stored));
    if (this.state === 'standby') this.state = 'running';
    // All types of the same areas are asked for: one that this build does not know needs a newer build.
    const types = askedTypes(this.reads);
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

  private movesFrom(stored: string): PlaceMoves {
    return new PlaceMoves(stored, {
      idle_ms: IDLE_MOVE_MS,
      moveIdle: (to) => this.commit(to, [], []),
      // A failure that lasts is met and told by the next batch.
      onFailure: (error) =>
        this.deps.log.debug({ reactor: this.reactor.name, err: describe(error) }, 'an idle checkpoint did not move'),
    });
  }

  private async react(batch: EventBatch, signal: AbortSignal): Promise<void> {
    const { db, metrics } = this.deps;
    const label = { reactor: this.reactor.name };
    const { events, newer } = takenFrom(this.reads, batch.events);
    let kept: Write[] = [];
    let parked: Parked[] = [];
    const { moves } = this;
    let done = moves.stored;
    const flush = async (to: string) => {
      if (to === moves.stored) return;
      await this.commit(to, kept, parked);
      metrics.parked.inc(parked.length, label);
      [kept, parked] = [[], []];
    };
    const streams = [...new Set(events.map(({ stream }) => stream))];
    const waiting = streams.length === 0 ? new Set<string>() : await waitingStreams(db, this.place, streams);

    for (const event of events) {
      // What was done so far is stored; whoever drives it next does the rest.
      if (signal.aborted) return flush(done);
      if (waiting.has(event.stream)) {
        parked.push(blocked(event));
      } else {
        const writes: Write[] = [];
        const over = new AbortController();
        try {
          const tools = toolsFor(this.deps, this.reactor.name, event, writes, () => flush(done), over.signal);
          await inTime(this.reactor.react(event, tools), this.deps.reaction_ms, this.reactor.name, over);
          kept.push(...writes);
        } catch (error) {
          if (!(error instanceof CannotReact)) {
            await flush(done);
            throw error;
          }
          waiting.add(event.stream);
          parked.push({ item: { kind: 'event', event }, reason: 'poison', error: describe(error) });
        }
      }
      done = event.position;
      metrics.reactions.inc(1, label);
    }
    if (newer) {
      await flush(done);
      throw new NewerEventMet(`reactor ${this.reactor.name}`, moves.stored, newer);
    }
    moves.seen = batch.position;
    if (events.length > 0 || moves.due) await flush(batch.position);
    else moves.later();
  }

  private async commit(to: string, kept: readonly Write[], parked: readonly Parked[]): Promise<void> {
    const { db, events, jobs, log } = this.deps;
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
      log.error({ reactor: this.reactor.name, parked: parked.length }, 'events parked as dead letters of a reactor');
    }
  }

  /** An event must not be parked behind a stream that was freed meanwhile: nobody would take it up again. */
  private async stillWaiting(tx: Queryable, parked: readonly Parked[]): Promise<void> {
    const heads = new Set(parked.flatMap((one) => (one.reason === 'poison' ? [streamOf(one)] : [])));
    const behind = parked.filter((one) => one.reason === 'blocked').map(streamOf);
    const wanted = [...new Set(behind)].filter((stream) => !heads.has(stream));
    if (wanted.length === 0) return;
    const waiting = await waitingStreams(tx, this.place, wanted);
    if (wanted.some((stream) => !waiting.has(stream))) throw new CheckpointLost(this.place.name, []);
  }

  /** Looks how far it is behind. */
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

const streamOf = ({ item }: Parked): string => (item.kind === 'event' ? item.event.stream : '');

const blocked = (event: StoredEvent): Parked => ({
  item: { kind: 'event', event },
  reason: 'blocked',
  error: `an earlier event of ${event.stream} is parked`,
});

/** What is left behind writes nothing: its tools end with `over`, what it kept is dropped. */
async function inTime(reaction: Promise<void>, ms: number, reactor: string, over: AbortController): Promise<void> {
  await within(reaction, ms, () => {
    const error = new Error(`a reaction of ${reactor} did not end within ${ms} ms`);
    over.abort(error);
    return error;
  });
}
