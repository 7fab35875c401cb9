import type { Settings } from '../../kernel/settings';
import type { Logger } from '../../engines/log/port';
import { startEmbeddedPostgres } from '../../engines/postgres/embedded';
import { holdDataFolder } from '../../engines/data-folder';

/**
 * The configured database as it is, without our schema: what a restore fills. The embedded one is started for it.
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
