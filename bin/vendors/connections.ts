import { createConnectionTokens } from '../../services/connections/connection-tokens';
import { createActiveConnections } from '../../services/connections/active-connections';
import { appOfGrant } from '../../services/connections/oauth-apps';
import type { VendorConnections } from '../../services/connections/vendor-connections';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import type { Settings } from '../../kernel/settings/settings';
import { discordOAuth } from '../../vendors/discord/oauth';
import { kickOAuth } from '../../vendors/kick/oauth';
import { kickSubscriptions } from '../../vendors/kick/subscriptions';
import type { OAuthVendor } from '../../vendors/oauth/port';
import { spotifyOAuth } from '../../vendors/spotify/oauth';
import { trovoOAuth } from '../../vendors/trovo/oauth';
import { twitchOAuth } from '../../vendors/twitch/oauth';
import { youtubeOAuth } from '../../vendors/youtube/oauth';
import type { Engines } from '../../engines/engines';
import { openHttp } from './http';
import type { ShutdownStack } from '../../lib/async/shutdown-stack';

/** Opens the connections, their tokens, and the clients of each vendor. */
export function openConnections(deps: {
  settings: Settings;
  engines: Engines;
  log: Logger;
  metrics: Metrics;
  stops: ShutdownStack;
}) {
  const { settings, engines, log } = deps;
  const { db, secrets, events, wakeups, subject_keys } = engines;
  const http = openHttp(deps);
  const { twitch, google, kick, trovo, discord, spotify } = settings;
  const vendors: ReadonlyMap<string, OAuthVendor> = new Map([
    ['twitch', twitchOAuth(http, twitch)],
    ['youtube', youtubeOAuth(http, google)],
    ['kick', kickOAuth(http, kick)],
    ['trovo', trovoOAuth(http, trovo)],
    ['discord', discordOAuth(http, discord)],
    ['spotify', spotifyOAuth(http, spotify)],
  ]);
  const texts = createPersonalTexts(subject_keys);
  const tokens = createConnectionTokens({ db, texts, secrets, settings, events, wakeups, log, vendors });
  const living = createActiveConnections({ db, wakeups });
  const at_vendors: VendorConnections = {
    ...{ vendors, tokens, texts, living },
    kick: kickSubscriptions(http, kick),
    appOf: (grant) => appOfGrant({ db, secrets, settings }, grant),
  };
  return { vendors, tokens, living, at_vendors };
}

export type OpenConnections = ReturnType<typeof openConnections>;
