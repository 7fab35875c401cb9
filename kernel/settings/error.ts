/** The settings are wrong; the message is the one line that the person who starts Lumio reads. */
export class SettingsError extends Error {}

export const SETTINGS_PREFIX = 'LUMIO_';

/** Names of the environment for messages: `webhooks.kick_secret` is `LUMIO_WEBHOOKS__KICK_SECRET`. */
export function environmentName(path: readonly PropertyKey[]): string {
  return SETTINGS_PREFIX + path.map((part) => String(part).toUpperCase()).join('__');
}
