import { runEvery } from '../../lib/async/run-every';
import type { AreaReactor } from '../../app/reactor';
import type { Campaign, Shares } from '../../engines/leases/port';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import { checkEngine, readCheckpoints } from '../../projections/runtime/checkpoint/checkpoints';
import { sparingCounts } from '../../projections/runtime/dead-letter/dead-letters';
import { describe } from '../../projections/runtime/drive/failures';
import { reactorMetrics } from './metrics';
import { readerOf, REACTOR_STATES, ReactorRunner, type ReactorState } from './runner';
import type { ToolsDeps } from './tools';

export interface ReactorsDeps extends ToolsDeps {
  shares: Shares;
  log: Logger;
  metrics: Metrics;
  reactors: readonly AreaReactor[];
  /** Longest pause between attempts of a failing reaction. Default 30 s. */
  backoff_ms?: number;
  /** Longest time of a reaction; a longer one has failed. Default one minute. */
  reaction_ms?: number;
  /** Failed attempts of one event after which it is parked with the following events of its account. Default 5. */
  tries?: number;
  /** Shortest time from the first failed attempt of an event to its parking. Default 5 minutes. */
  park_after_ms?: number;
  /** Interval of lag measurements. Default 5 s. */
  observe_ms?: number;
}

export interface Reactors {
  /** Status of the reactors in this process. */
  status(): { reactor: string; state: ReactorState; error: string | null; lag_seconds: number }[];
  /** Stops after the running reaction. */
  stop(): Promise<void>;
}

/**
 * Runs every reactor, each in one process of all. All start positions are stored before the first reaction.
 * @throws EngineMismatch when a checkpoint belongs to another event store; Error for two reactors of one name
 */
export async function startReactors(deps: ReactorsDeps): Promise<Reactors> {
  const { db, events, shares, log, reactors, jobs, backoff_ms = 30_000, observe_ms = 5_000 } = deps;
  const { reaction_ms = 60_000, tries = 5, park_after_ms = 300_000 } = deps;
  const names = reactors.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two reactors are named ${twice}`);
  const metrics = reactorMetrics(deps.metrics);
  const needs = { db, events, log, metrics, jobs, backoff_ms, reaction_ms, tries, park_after_ms };
  const runners = reactors.map((reactor) => new ReactorRunner(reactor, needs));
  for (const runner of runners) {
    const place = readerOf(runner.reactor);
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
    await runner.waitForNewerVersionToStop(at, stopping.signal);
    if (!stopping.signal.aborted) offer(runner);
  };
  for (const runner of runners) {
    runner.onNewer = (at) => {
      const leaving = leave(runner, at).finally(() => left.delete(leaving));
      left.add(leaving);
    };
    offer(runner);
  }

  const countLetters = sparingCounts(db);
  const end = runEvery(
    observe_ms,
    async () => {
      const parked = await countLetters();
      for (const runner of runners) {
        await runner.observe();
        const label = { reactor: runner.reactor.name };
        metrics.lag_seconds.set(runner.lag_seconds, label);
        metrics.dead_letters.set(parked.get(readerOf(runner.reactor).name) ?? 0, label);
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
