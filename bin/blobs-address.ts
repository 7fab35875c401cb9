import { join } from 'node:path';
import type { Settings } from '../access/settings';

/** Where the blobs of this installation lie: `blobs.url`, else a folder in the data folder. */
export const blobsAddress = ({ blobs, data_dir }: Pick<Settings, 'blobs' | 'data_dir'>): string =>
  blobs.url ?? join(data_dir, 'blobs');
