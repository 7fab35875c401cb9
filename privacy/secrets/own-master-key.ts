import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../../kernel/settings/settings';

/**
 * The master keys: `secrets.keys`, or, for the database in the data folder, a key made there at the first start (mode
 * 0600). Losing it makes every sealed secret and all personal data unreadable: it belongs into the backup of the keys,
 * apart from the data.
 */
export function masterKeyText(settings: Settings): string {
  if (settings.secrets.keys !== undefined) return settings.secrets.keys;
  const path = join(settings.data_dir, 'secrets.keys');
  if (!existsSync(path)) {
    writeFileSync(path, `local:${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
  }
  return readFileSync(path, 'utf8').trim();
}
