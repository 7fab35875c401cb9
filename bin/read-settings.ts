import type { Settings } from '../kernel/settings';
import { developmentSecrets } from '../demo/credentials';
import { loadSettings } from '../cli/runtime/load-settings';

/**
 * The settings of this process; development gets webhook secrets of its own where none are set. @throws SettingsError
 */
export function readSettings(): Settings {
  return loadSettings({ env: process.env, cwd: process.cwd(), development: developmentSecrets });
}
