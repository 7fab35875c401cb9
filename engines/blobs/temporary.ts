import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

const DAY_MS = 86_400_000;

/** A name for a file that is being written: it says when that began. */
export const temporaryName = (prefix = ''): string => `${prefix}${Date.now()}-${randomBytes(8).toString('hex')}`;

/** Removes half-written files of this prefix whose process was killed more than a day ago; others are left alone. */
export async function removeLeftovers(folder: string, prefix = ''): Promise<void> {
  for (const name of await readdir(folder)) {
    const began_at = Number(/^(\d{13})-/.exec(name.slice(prefix.length))?.[1]);
    if (!name.startsWith(prefix) || !(Date.now() - began_at > DAY_MS)) continue;
    // In a folder that others write to it may be theirs, or no file at all: it stays then, and no start fails for it.
    await rm(join(folder, name), { force: true }).catch(() => undefined);
  }
}
