import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { DataFolderBusy, holdDataFolder } from '../../engines/data-folder';
import { runningUrl } from '../../engines/postgres/embedded/server';

type DataFolder = ReturnType<typeof holdDataFolder>;

/** Wait for a server that holds the folder, until its database is available or the server has stopped. */
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 100;

/**
 * Returns the database of the server that runs on the folder, or else the folder, for starting one. Waits for a server
 * that is starting or stopping.
 * @throws DataFolderBusy
 */
export async function runningDatabase(data_dir: string): Promise<{ running_url?: string; folder?: DataFolder }> {
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

/** Error codes of PostgreSQL and its socket while it starts, stops, or lacks our database. */
const NOT_NOW: ReadonlySet<unknown> = new Set(['57P03', '3D000', 'ENOENT', 'ECONNREFUSED']);

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return true;
  } catch (error) {
    // Other errors are left to the user of the database.
    return !NOT_NOW.has((error as { code?: unknown }).code);
  } finally {
    await client.end().catch(() => undefined);
  }
}
