import type { Settings } from '../kernel/settings';
import { discordIdentity } from '../vendors/discord/identity';
import { kickIdentity } from '../vendors/kick/identity';
import { developmentIdentity } from '../vendors/login/development';
import type { IdentityProvider } from '../vendors/login/port';
import { trovoIdentity } from '../vendors/trovo/identity';
import { twitchIdentity } from '../vendors/twitch/identity';
import { googleIdentity } from '../vendors/youtube/identity';
import { type HttpDeps, openHttp } from './http';

/** The providers that people may log in with here: those whose apps the settings name. */
export function openLogins(deps: HttpDeps & { settings: Settings }) {
  const { settings } = deps;
  const { twitch, google, kick, trovo, discord } = settings;
  const http = openHttp(deps);
  const known = {
    twitch: [twitch, () => twitchIdentity(http, { ...twitch, client_ids: twitch.client_id })],
    google: [google, () => googleIdentity(http, { ...google, client_ids: google.client_id })],
    kick: [kick, () => kickIdentity(http, { ...kick, client_ids: kick.client_id })],
    trovo: [trovo, () => trovoIdentity(http, { ...trovo, client_ids: trovo.client_id })],
    discord: [discord, () => discordIdentity(http, { ...discord, client_ids: discord.client_id })],
  } as const;
  const providers = new Map<string, IdentityProvider>();
  for (const [provider, [{ client_id }, make]] of Object.entries(known)) {
    const real = client_id.length > 0 ? make() : null;
    if (settings.auth.development_logins) providers.set(provider, developmentIdentity(real));
    else if (real !== null) providers.set(provider, real);
  }
  return providers;
}
