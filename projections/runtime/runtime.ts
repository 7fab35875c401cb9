import { randomUUID } from 'node:crypto';
import type { ReadModels } from '../../app/services';
import type { Metrics } from '../../engines/metrics/port';
import type { Database } from '../../engines/postgres/port';
import { runEvery } from '../../lib/async/run-every';
import { checkEngine, readCheckpoints } from './checkpoint/checkpoints';
import { sparingCounts } from './dead-letter/dead-letters';
import { describe } from './drive/failures';
import { runnerMetrics } from './status/metrics';
import { createOutboxLock } from './outbox/lock';
import { createOutboxOrder } from './outbox/order';
import { rotateOutboxPartitions } from './outbox/partitions';
import { initialiseCheckpoint } from './drive/checkpoint-init';
import { Progress } from './checkpoint/progress';
import { reportEnded, reportStates, type ReportedState } from './status/states';
import type { Projection } from '../../kernel/projection';
import { createReadModels, type ReadModelDeps } from './status/read-models';
import { Runner, type RunnerDeps } from './drive/runner';
import { RUNNER_STATES, type RunnerState } from './status/runner-states';

/** Dependencies of a runner, without those that the runtime creates. */
type OfRunners = Omit<
  RunnerDeps,
  'metrics' | 'progress' | 'batch_records' | 'batch_events' | 'backoff_ms' | 'stall_ms'
>;

export interface ProjectionRuntimeDeps extends OfRunners {
  metrics: Metrics;
  projections: readonly Projection[];
  /** See {@link ReadModelDeps}. */
  unbuilt?: ReadModelDeps['unbuilt'];
  /** See {@link ReadModelDeps}. */
  versions?: ReadModelDeps['versions'];
  /** See {@link ReadModelDeps}. */
  wait_ms?: ReadModelDeps['wait_ms'];
  /** Called for an error that no restart can repair: a checkpoint of another engine. */
  onFatal?: (error: Error) => void;
  /**
   * Milliseconds that channel messages stay for reconnecting clients. Default 11 minutes: the default resume window and
   * a margin.
   */
  keep_outbox_ms?: number;
  /** Most records per transaction. Default 1000. */
  batch_records?: number;
  /** See {@link RunnerDeps}. */
  build_db?: Database;
  /** See {@link RunnerDeps}. */
  build_records?: number;
  /** Most domain events per transaction. Default 500. */
  batch_events?: number;
  /** Milliseconds behind and without progress after which a projection is restarted. Default 30 s (faults row 9). */
  stall_ms?: number;
  /** Interval of the lag measurement. Default 5 s. */
  observe_ms?: number;
  /** Longest pause between restarts. Default 10 s. */
  backoff_ms?: number;
  /** Longest time that `stop()` waits for batches in hand. Default 8 s. */
  drain_ms?: number;
}

export interface ProjectionLag {
  projection: string;
  state: RunnerState;
  /** Records not applied; domain events: 1 when behind. */
  behind: number;
  seconds: number;
}

export interface ProjectionRuntime {
  /** Checks that every checkpoint belongs to these engines, then drives. @throws EngineMismatch */
  start(): Promise<void>;
  /**
   * Drains: takes no new batch, lets current batches end, at most `drain_ms`. Batches that are cut off are rolled back
   * and come again.
   */
  stop(): Promise<void>;
  readonly read_models: ReadModels;
  lag(): ProjectionLag[];
}

type State = 'NEW' | 'STARTING' | 'RUNNING' | 'DRAINING' | 'STOPPED';
const MOVES: Record<State, readonly State[]> = {
  NEW: ['STARTING', 'STOPPED'],
  STARTING: ['RUNNING', 'STOPPED'],
  RUNNING: ['DRAINING'],
  DRAINING: ['STOPPED'],
  STOPPED: [],
};
const TRIM_EVERY_MS = 30_000;
const OUTBOX_LOCK_LOOK_MS = 1_000;

/**
 * Drives every projection of this process. NEW → STARTING → RUNNING → DRAINING → STOPPED; timers exist only in RUNNING.
 * Each projection has a runner of its own, so that a failing or waiting projection delays no other. Design §7.
 */
export function createProjectionRuntime(deps: ProjectionRuntimeDeps): ProjectionRuntime {
  const { db, broker, events, log, projections } = deps;
  const { stall_ms = 30_000, observe_ms = 5_000, drain_ms = 8_000, keep_outbox_ms = 660_000 } = deps;
  const metrics = runnerMetrics(deps.metrics);
  const progress = new Progress();
  const read_models = createReadModels({ ...deps, progress });
  const timers: (() => void)[] = [];
  const holder = randomUUID();
  let runners: Runner[] = [];
  let state: State = 'NEW';
  const enter = (to: State) => {
    if (!MOVES[state].includes(to)) throw new Error(`projection runtime: no way from ${state} to ${to}`);
    state = to;
  };

  const countLetters = sparingCounts(db);

  /** Repeats work while RUNNING. */
  const every = (ms: number, what: string, work: () => Promise<void>) =>
    timers.push(runEvery(ms, work, (error) => log.warn({ err: describe(error) }, `${what} failed; it is tried again`)));

  /** Applied counts of the runners at the last report, and its time. */
  let last = { at: performance.now(), applied: new Map<string, number>() };
  function said(): ReportedState[] {
    const { at, applied } = last;
    const seconds = Math.max(0.001, (performance.now() - at) / 1000);
    last = { at: performance.now(), applied: new Map(runners.map((one) => [one.projection.name, one.applied])) };
    return runners.map(({ projection: { name, version }, state: now, applied: all }) => {
      return { projection: name, version, state: now, rate: (all - (applied.get(name) ?? 0)) / seconds };
    });
  }

  async function observe(): Promise<void> {
    for (const runner of runners) {
      if (state !== 'RUNNING') return;
      await runner.observe();
      const label = { projection: runner.projection.name };
      metrics.lag_records.set(runner.lag.behind, label);
      metrics.lag_seconds.set(runner.lag.seconds, label);
      for (const one of RUNNER_STATES) metrics.state.set(one === runner.state ? 1 : 0, { ...label, state: one });
    }
    await reportStates(db, holder, said());
    const parked = await countLetters();
    for (const { name } of projections) metrics.dead_letters.set(parked.get(name) ?? 0, { projection: name });
  }

  return {
    read_models,
    async start() {
      const names = projections.map(({ name }) => name);
      const twice = names.find((name, index) => names.indexOf(name) !== index);
      if (twice !== undefined) throw new Error(`two projections are named ${twice}`);
      enter('STARTING');
      try {
        for (const p of projections) {
          const unknown = p.jobs?.find((job) => !deps.jobs?.has(job));
          if (unknown !== undefined) throw new Error(`projection ${p.name} asks for the job ${unknown}: there is none`);
          const engine = p.from.kind === 'topic' ? broker.id : events.id;
          checkEngine(p, (await readCheckpoints(db, p)).values(), engine);
        }
      } catch (error) {
        enter('STOPPED');
        read_models.close();
        throw error;
      }
      for (const p of projections) {
        await initialiseCheckpoint(deps, p).catch((error: unknown) =>
          log.warn({ projection: p.name, err: describe(error) }, 'a projection could not be opened; it is tried again'),
        );
      }
      enter('RUNNING');
      const { batch_records = 1000, batch_events = 500, backoff_ms = 10_000 } = deps;
      runners = projections.map(
        (p) => new Runner(p, { ...deps, metrics, progress, batch_records, batch_events, backoff_ms, stall_ms }),
      );
      every(observe_ms, 'looking at projection lag', observe);
      const ownOutboxLock = createOutboxLock(db);
      every(OUTBOX_LOCK_LOOK_MS, 'bringing the outbox to its own lock', async () => {
        await ownOutboxLock();
      });
      const outboxOrder = createOutboxOrder(db);
      every(OUTBOX_LOCK_LOOK_MS, 'bringing the outbox to an order of each shard', async () => {
        await outboxOrder();
      });
      every(TRIM_EVERY_MS, 'turning the partitions of the outbox', async () => {
        await rotateOutboxPartitions(db, keep_outbox_ms);
      });
    },
    async stop() {
      if (state === 'STOPPED') return;
      if (state !== 'RUNNING') {
        enter('STOPPED');
        read_models.close();
        return;
      }
      enter('DRAINING');
      for (const end of timers) end();
      let limit: NodeJS.Timeout | undefined;
      const late = new Promise<'late'>((resolve) => (limit = setTimeout(() => resolve('late'), drain_ms)));
      const drained = Promise.all(runners.map((runner) => runner.stop()));
      if ((await Promise.race([drained, late])) === 'late') {
        log.warn({ drain_ms }, 'projections did not drain in time; what is cut off is undone and comes again');
      }
      clearTimeout(limit);
      // Best effort: a process that fails to report this counts as gone within seconds.
      await reportEnded(db, holder).catch(() => undefined);
      read_models.close();
      enter('STOPPED');
    },
    lag: () => runners.map(({ projection, state: now, lag }) => ({ projection: projection.name, state: now, ...lag })),
  };
}
