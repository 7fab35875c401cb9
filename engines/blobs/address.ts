import { join } from 'node:path';
import type { Settings } from '../../kernel/settings/settings';
import { openBlobs } from './open';
import type { Blobs } from './port';
import { SettingsError } from '../../kernel/settings/error';

/** Address of this installation's blobs: `blobs.url`, else a folder in the data folder. */
const blobsAddress = ({ blobs, data_dir }: Pick<Settings, 'blobs' | 'data_dir'>): string =>
  blobs.url ?? join(data_dir, 'blobs');

/** The blob store of the settings. @throws SettingsError naming the setting when the configured one cannot be used */
export async function openConfiguredBlobs(settings: Pick<Settings, 'blobs' | 'data_dir'>): Promise<Blobs> {
  try {
    return await openBlobs(blobsAddress(settings));
  } catch (error) {
    if (settings.blobs.url === undefined) throw error;
    throw new SettingsError(`LUMIO_BLOBS__URL (blobs.url): ${(error as Error).message}`, { cause: error });
  }
}
