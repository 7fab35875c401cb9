import type { ChatCalls } from '../app/job';
import { createLog } from '../engines/log/pino';
import { createPrometheusMetrics } from '../engines/metrics/prometheus';
import { createArchiveReader } from '../maintenance/archive/reader';
import type { ConnectOptions, FullContext } from '../cli/runtime/context';
import { runningDatabase } from '../cli/runtime/running-database';
import { openConnections } from './vendors/connections';
import { openEngines } from './engines';
import { openJobs } from './upkeep/jobs';
import { PROJECTIONS, REACTORS } from './areas';
import { readSettings } from './read-settings';
import { trimRebuilt } from './upkeep/trim-rebuilt';
import { noteLateRecords } from '../services/history/late-records';
import { ShutdownStack } from '../lib/async/shutdown-stack';

const noCall = (): never => {
  throw new Error('a command of the command line calls no chat');
};
const NO_CHATS: ChatCalls = {
  ...{ send: noCall, announce: noCall, shoutOut: noCall, moderate: noCall, postDiscord: noCall },
  ...{ noteModeration: noCall, maxCharacters: noCall, enrich: noCall },
};

/**
 * Opens the engines for a command of the command line. With the embedded database it connects to the server that runs
 * on the data folder, or starts the database until the command ends.
 * @param command its first word, which names the database sessions
 * @throws Error in one line when `restored` is true and the database has an unfinished restore
 */
export async function connect(command: string, { restored = false }: ConnectOptions = {}): Promise<FullContext> {
  const settings = readSettings();
  const { log } = createLog('warn', { to: 'stderr' });
  const { running_url, folder } = settings.database.url === undefined ? await runningDatabase(settings.data_dir) : {};
  const lost = (reason: string) => log.error({ reason }, 'the database is gone');
  const metrics = createPrometheusMetrics({});
  const engines = await openEngines({ settings, log, metrics, running_url, command, restored, onLost: lost });
  // Makes no calls to vendors: commands only enqueue jobs.
  const parts = { settings, engines, log, metrics, stops: new ShutdownStack() };
  const { at_vendors } = openConnections(parts);
  return {
    ...engines,
    projections: PROJECTIONS,
    reactions: {
      reactors: REACTORS,
      jobs: openJobs(parts, at_vendors, NO_CHATS).jobs,
      whenCounted: noteLateRecords(settings.history.session_grace),
    },
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
