import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createLog } from '../engines/log/pino';
import { createPrometheusMetrics } from '../engines/metrics/prometheus';
import { runningUrl } from '../engines/postgres/embedded';
import { createArchiveReader } from '../maintenance/archive-reader';
import type { FullContext } from '../cli/runtime/context';
import { openConnections } from './connections';
import { DataFolderBusy, holdDataFolder } from './data-folder';
import { openEngines } from './engines';
import { openJobs } from './jobs';
import { PROJECTIONS, REACTORS } from './areas';
import { readSettings } from './read-settings';
import { Stops } from './stops';

/**
 * The engines for a command of the command line. With the embedded database: through the server that is running on the
 * data folder, else by starting the database for the length of the command.
 */
export async function connect(): Promise<FullContext> {
  const settings = readSettings();
  const { log } = createLog('warn', 'stderr');
  const { running_url, folder } = settings.database.url === undefined ? await embeddedOf(settings.data_dir) : {};
  const lost = (reason: string) => log.error({ reason }, 'the database is gone');
  const metrics = createPrometheusMetrics({});
  const engines = await openEngines({ settings, log, metrics, running_url, onLost: lost });
  const parts = { settings, engines, log, metrics };
  // None of their calls is made here: jobs are only asked for.
  const { at_vendors } = openConnections({ ...parts, stops: new Stops() });
  return {
    ...engines,
    projections: PROJECTIONS,
    reactions: { reactors: REACTORS, jobs: openJobs(parts, at_vendors).jobs },
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

/** How long a server that holds the folder may take until its database is there, or until it is gone. */
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 100;

/**
 * The database of the server that runs on the folder, or the folder itself, to start one. One that starts or stops is
 * waited for.
 * @throws DataFolderBusy
 */
async function embeddedOf(data_dir: string): Promise<{ running_url?: string; folder?: DataFolder }> {
  const give_up_at = Date.now() + PATIENCE_MS;
  for (;;) {
    const running_url = runningUrl(data_dir);
    const late = Date.now() > give_up_at;
    if (running_url !== undefined && (late || (await answers(running_url)))) return { running_url };
    if (running_url === undefined) {
      try {
        return { folder: holdDataFolder(data_dir) };
      } catch (error) {
        if (!(error instanceof DataFolderBusy)) throw error;
        if (late) {
          const advice = 'if its database is an external one, give this command the same LUMIO_DATABASE__URL';
          throw new DataFolderBusy(`${error.message}; ${advice}`, { cause: error });
        }
      }
    }
    await sleep(LOOK_AGAIN_MS);
  }
}

/** What a PostgreSQL says, or its socket, while it starts, stops, or has no database of ours yet. */
const NOT_NOW: ReadonlySet<unknown> = new Set(['57P03', '3D000', 'ENOENT', 'ECONNREFUSED']);

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return true;
  } catch (error) {
    // Anything else is for whoever uses the database to say.
    return !NOT_NOW.has((error as { code?: unknown }).code);
  } finally {
    await client.end().catch(() => undefined);
  }
}

type DataFolder = ReturnType<typeof holdDataFolder>;
