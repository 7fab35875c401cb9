import type { Settings } from '../kernel/settings/settings';
import { developmentSecrets } from '../demo/credentials';
import { loadSettings } from '../cli/runtime/load-settings';

/** Reads the settings of this process; development generates webhook secrets that are not set. @throws SettingsError */
export function readSettings(): Settings {
  return loadSettings({ env: process.env, cwd: process.cwd(), development: developmentSecrets });
}
