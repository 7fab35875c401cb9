import { regularly } from '../../kernel/regularly';
import type { AreaReactor } from '../../access/reactor';
import type { Campaign, Shares } from '../../engines/leases/port';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import { checkEngine, readCheckpoints } from '../../projections/runtime/checkpoints';
import { countParked } from '../../projections/runtime/dead-letters';
import { describe } from '../../projections/runtime/failures';
import { reactorMetrics } from './metrics';
import { placeOf, REACTOR_STATES, ReactorRunner, type ReactorState } from './runner';
import type { ToolsDeps } from './tools';

export interface ReactorsDeps extends ToolsDeps {
  shares: Shares;
  log: Logger;
  metrics: Metrics;
  reactors: readonly AreaReactor[];
  /** Longest pause between tries of a reaction that fails. Default 30 s. */
  backoff_ms?: number;
  /** A reaction that takes longer has failed. Default one minute. */
  reaction_ms?: number;
  /** How often lag is looked at. Default 5 s. */
  observe_ms?: number;
}

export interface Reactors {
  /** Of this process. */
  status(): { reactor: string; state: ReactorState; error: string | null; lag_seconds: number }[];
  /** Lets the reaction in hand end. */
  stop(): Promise<void>;
}

/**
 * Drives every reactor, each by one process of all. Where they begin is fixed before the first of them reacts.
 * @throws EngineMismatch when a checkpoint belongs to another event store; Error when two have one name
 */
export async function startReactors(deps: ReactorsDeps): Promise<Reactors> {
  const { db, events, shares, log, reactors, jobs, backoff_ms = 30_000, observe_ms = 5_000 } = deps;
  const { reaction_ms = 60_000 } = deps;
  const names = reactors.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two reactors are named ${twice}`);
  const metrics = reactorMetrics(deps.metrics);
  const needs = { db, events, log, metrics, jobs, backoff_ms, reaction_ms };
  const runners = reactors.map((reactor) => new ReactorRunner(reactor, needs));
  for (const runner of runners) {
    const place = placeOf(runner.reactor);
    checkEngine(place, (await readCheckpoints(db, place)).values(), events.id);
    await runner.install();
  }
  const stopping = new AbortController();
  const offers = new Map<ReactorRunner, Campaign>();
  const left = new Set<Promise<void>>();
  const offer = (runner: ReactorRunner) =>
    offers.set(
      runner,
      shares.offer(`reactor:${runner.reactor.name}`, (signal) => runner.run(signal)),
    );
  const leave = async (runner: ReactorRunner, at: string) => {
    await offers.get(runner)!.stop();
    await runner.untilNewerBuildIsGone(at, stopping.signal);
    if (!stopping.signal.aborted) offer(runner);
  };
  for (const runner of runners) {
    runner.onNewer = (at) => {
      const leaving = leave(runner, at).finally(() => left.delete(leaving));
      left.add(leaving);
    };
    offer(runner);
  }

  const end = regularly(
    observe_ms,
    async () => {
      const parked = await countParked(db);
      for (const runner of runners) {
        await runner.observe();
        const label = { reactor: runner.reactor.name };
        metrics.lag_seconds.set(runner.lag_seconds, label);
        metrics.dead_letters.set(parked.get(placeOf(runner.reactor).name) ?? 0, label);
        for (const state of REACTOR_STATES) metrics.state.set(state === runner.state ? 1 : 0, { ...label, state });
      }
    },
    (error) => log.warn({ err: describe(error) }, 'looking at the lag of reactors failed; it is tried again'),
  );

  return {
    status: () =>
      runners.map(({ reactor, state, error, lag_seconds }) => ({ reactor: reactor.name, state, error, lag_seconds })),
    async stop() {
      end();
      stopping.abort();
      await Promise.all([...left, ...[...offers.values()].map((one) => one.stop())]);
    },
  };
}
