import { createLog } from '../engines/log/pino';
import { createPrometheusMetrics } from '../engines/metrics/prometheus';
import { createArchiveReader } from '../maintenance/archive-reader';
import type { FullContext } from '../cli/runtime/context';
import { runningDatabase } from '../cli/runtime/running-database';
import { openConnections } from './connections';
import { openEngines } from './engines';
import { openJobs } from './jobs';
import { PROJECTIONS, REACTORS } from './areas';
import { readSettings } from './read-settings';
import { trimRebuilt } from './trim-rebuilt';
import { Stops } from '../kernel/stops';

/**
 * The engines for a command of the command line. With the embedded database: through the server that is running on the
 * data folder, else by starting the database for the length of the command.
 */
export async function connect(): Promise<FullContext> {
  const settings = readSettings();
  const { log } = createLog('warn', 'stderr');
  const { running_url, folder } = settings.database.url === undefined ? await runningDatabase(settings.data_dir) : {};
  const lost = (reason: string) => log.error({ reason }, 'the database is gone');
  const metrics = createPrometheusMetrics({});
  const engines = await openEngines({ settings, log, metrics, running_url, onLost: lost });
  // No call to the outside is made here: jobs are only asked for.
  const parts = { settings, engines, log, metrics, stops: new Stops() };
  const { at_vendors } = openConnections(parts);
  return {
    ...engines,
    projections: PROJECTIONS,
    reactions: { reactors: REACTORS, jobs: openJobs(parts, at_vendors).jobs },
    readArchived: createArchiveReader(engines),
    trim: trimRebuilt,
    settings,
    metrics,
    log,
    async close() {
      await engines.close();
      folder?.release();
    },
  };
}
