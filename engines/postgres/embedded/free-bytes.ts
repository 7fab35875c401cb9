import { statfs } from 'node:fs/promises';
import type { Settings } from '../../../kernel/settings/settings';

/** Bytes free on the disk of the embedded database; null for one elsewhere, whose disk nobody here can see. */
export async function freeBytes({ data_dir, database }: Settings): Promise<number | null> {
  if (database.url !== undefined) return null;
  const { bavail, bsize } = await statfs(data_dir);
  return bavail * bsize;
}
