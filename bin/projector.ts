import type { Unbuilt } from '../projections/runtime/unbuilt';
import { createArchiveReader } from '../maintenance/archive-reader';
import { createProjectionRuntime, type ProjectionRuntime } from '../projections/runtime/runtime';
import { startReactors } from '../reactors/runtime/runtime';
import { PROJECTIONS, REACTORS, VERSIONS } from './areas';
import { freeBytes } from '../engines/postgres/free-bytes';
import type { CallersDeps } from './callers';
import { projectionsCheck, reactorsCheck } from '../api/health-checks';
import type { OpenJobs } from './jobs';
import { startRelays } from './relays';
import { trimRebuilt } from './trim-rebuilt';

/** The projections of the role `projector`, where the process has it; they do not run yet. */
export function openProjector(
  deps: CallersDeps,
  jobs: OpenJobs['jobs'],
  unbuilt: Unbuilt,
  onFatal: (reason: string) => void,
): ProjectionRuntime | undefined {
  const { settings, engines, log, metrics } = deps;
  const { broker, records, events, wakeups, tracing } = engines;
  if (!settings.roles.includes('projector')) return undefined;
  return createProjectionRuntime({
    db: engines.projector_db,
    build_db: engines.build_db,
    broker,
    records,
    events,
    wakeups,
    shares: engines.shares,
    log,
    metrics,
    tracing,
    projections: PROJECTIONS,
    jobs,
    unbuilt,
    versions: VERSIONS,
    wait_ms: settings.read_models.wait,
    freeBytes: () => freeBytes(settings),
    trim: trimRebuilt,
    readArchived: createArchiveReader(engines),
    keep_outbox_ms: settings.realtime.resume_window + 60_000,
    onFatal: (error) => onFatal(error.message),
  });
}

/** What goes with running projections: relays, reactors; and jobs. Answers with what health asks of them. */
export async function startFollowers(
  deps: CallersDeps,
  { jobs, start }: OpenJobs,
  runtime: ProjectionRuntime | undefined,
) {
  const { engines, log, metrics, stops } = deps;
  if (runtime) {
    const relays = startRelays(engines, log, metrics);
    stops.add(() => relays.stop());
  }
  const { events, shares, projector_db: db } = engines;
  const reactors = runtime && (await startReactors({ db, events, shares, log, metrics, reactors: REACTORS, jobs }));
  stops.add(() => reactors?.stop());
  const running = await start();
  stops.add(() => running?.stop());
  return [...(reactors ? [reactorsCheck(reactors)] : []), ...(runtime ? [projectionsCheck(runtime)] : [])];
}
