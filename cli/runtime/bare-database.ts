import type { Settings } from '../../kernel/settings/settings';
import type { Logger } from '../../engines/log/port';
import { startEmbeddedPostgres } from '../../engines/postgres/embedded/server';
import { holdDataFolder } from '../../engines/data-folder';

/**
 * Opens the configured database without migrating it, for a restore. Starts the embedded one.
 * @throws DataFolderBusy when a Lumio runs on the data folder
 */
export async function openBareDatabase(
  settings: Settings,
  log: Logger,
): Promise<{ url: string; close(): Promise<void> }> {
  if (settings.database.url !== undefined) return { url: settings.database.url, close: async () => undefined };
  const folder = holdDataFolder(settings.data_dir);
  try {
    const postgres = await startEmbeddedPostgres({ data_dir: settings.data_dir, log });
    return {
      url: postgres.url,
      async close() {
        await postgres.stop();
        folder.release();
      },
    };
  } catch (error) {
    folder.release();
    throw error;
  }
}
