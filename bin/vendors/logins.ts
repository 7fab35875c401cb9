import type { Settings } from '../../kernel/settings/settings';
import { discordIdentity } from '../../vendors/discord/identity';
import { kickIdentity } from '../../vendors/kick/identity';
import { offeredProviders } from '../../vendors/login/offered';
import { trovoIdentity } from '../../vendors/trovo/identity';
import { twitchIdentity } from '../../vendors/twitch/identity';
import { googleIdentity } from '../../vendors/youtube/identity';
import { type HttpDeps, openHttp } from './http';

/** Providers of logins: those whose apps are in the settings. */
export function openLogins(deps: HttpDeps & { settings: Settings }) {
  const { settings } = deps;
  const { twitch, google, kick, trovo, discord } = settings;
  const http = openHttp(deps);
  const known = {
    twitch: { app: twitch, identity: () => twitchIdentity(http, { ...twitch, client_ids: twitch.client_id }) },
    google: { app: google, identity: () => googleIdentity(http, { ...google, client_ids: google.client_id }) },
    kick: { app: kick, identity: () => kickIdentity(http, { ...kick, client_ids: kick.client_id }) },
    trovo: { app: trovo, identity: () => trovoIdentity(http, { ...trovo, client_ids: trovo.client_id }) },
    discord: { app: discord, identity: () => discordIdentity(http, { ...discord, client_ids: discord.client_id }) },
  };
  return offeredProviders(known, settings.auth.development_logins);
}
