import type { ReadModelAvailability } from '../projections/runtime/status/read-model-availability';
import { createArchiveReader } from '../maintenance/archive/reader';
import { createProjectionRuntime, type ProjectionRuntime } from '../projections/runtime/runtime';
import { startReactors } from '../reactors/runtime/runtime';
import { PROJECTIONS, REACTORS, VERSIONS } from './areas';
import { freeBytes } from '../engines/postgres/embedded/free-bytes';
import type { CallersDeps } from './callers';
import { projectionsCheck, reactorsCheck } from '../api/health/health-checks';
import type { OpenJobs } from './upkeep/jobs';
import { noteLateRecords } from '../services/history/late-records';
import { startRelays } from './relays';
import { trimRebuilt } from './upkeep/trim-rebuilt';

/** Opens the projections where the process has the role `projector`; they do not run yet. */
export function openProjector(
  deps: CallersDeps,
  jobs: OpenJobs['jobs'],
  unbuilt: ReadModelAvailability,
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
    whenCounted: noteLateRecords(settings.history.session_grace),
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

/** Starts relays and reactors next to running projections, and jobs. Returns their health checks. */
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
