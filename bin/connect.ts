import { createLog } from '../engines/log/pino';
import { createPrometheusMetrics } from '../engines/metrics/prometheus';
import { runningUrl } from '../engines/postgres/embedded';
import { createArchiveReader } from '../projections/archive-reader';
import type { FullContext } from './commands/context';
import { holdDataFolder } from './data-folder';
import { openEngines } from './engines';
import { PROJECTIONS } from './areas';
import { readSettings } from './read-settings';

/**
 * The engines for a command of the command line. With the embedded database: through the server that is running on the data folder,
 * else by starting the database for the length of the command.
 */
export async function connect(): Promise<FullContext> {
  const settings = readSettings();
  const { log } = createLog('warn', 'stderr');
  const running_url = settings.database.url === undefined ? runningUrl(settings.data_dir) : undefined;
  const folder = settings.database.url === undefined && !running_url ? holdDataFolder(settings.data_dir) : undefined;
  const lost = (reason: string) => log.error({ reason }, 'the database is gone');
  const metrics = createPrometheusMetrics({});
  const engines = await openEngines({ settings, log, metrics, running_url, onLost: lost });
  return {
    ...engines,
    projections: PROJECTIONS,
    readArchived: createArchiveReader(engines),
    settings,
    metrics,
    log,
    async close() {
      await engines.close();
      folder?.release();
    },
  };
}
