import type { Settings } from '../../kernel/settings/settings';
import { DatabaseRefused } from './errors';
import { SettingsError } from '../../kernel/settings/error';

/**
 * Does what connects to the database first. @throws SettingsError naming the setting when the configured database
 * refuses us
 */
export async function namingDatabase<T>({ database }: Settings, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof DatabaseRefused) || database.url === undefined) throw error;
    throw new SettingsError(`LUMIO_DATABASE__URL (database.url): ${error.message}`, { cause: error });
  }
}
