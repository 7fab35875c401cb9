import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

const DAY_MS = 86_400_000;

/** Name of a file that is being written, with the time of its beginning. */
export const temporaryName = (prefix = ''): string => `${prefix}${Date.now()}-${randomBytes(8).toString('hex')}`;

/**
 * Removes incomplete files, with `recursive` folders too, of this prefix that are older than a day, whose process must
 * have been killed.
 */
export async function removeLeftovers(folder: string, prefix = '', recursive = false): Promise<void> {
  for (const name of await readdir(folder)) {
    const began_at = Number(/^(\d{13})-/.exec(name.slice(prefix.length))?.[1]);
    if (!name.startsWith(prefix) || !(Date.now() - began_at > DAY_MS)) continue;
    // In a shared folder the entry may be another user's, or not a file: it stays then, and the start continues.
    await rm(join(folder, name), { recursive, force: true }).catch(() => undefined);
  }
}
