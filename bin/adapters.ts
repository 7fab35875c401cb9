import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import type { Database } from '../engines/postgres/port';
import type { Adapter } from '../ingest/runtime/adapter';
import { startAdapters } from '../ingest/runtime/adapters';
import { createLinkLeases } from '../ingest/runtime/link-leases';
import { createPersonalTexts } from '../engines/subject-keys/texts';
import { linkedConnections } from '../ingest/runtime/linked-connections';
import { createParkedWebhooks } from '../ingest/runtime/parked';
import { createDiscordAdapter } from '../ingest/discord/adapter';
import { createSpotifyAdapter } from '../ingest/spotify/adapter';
import { createStreamElementsAdapter } from '../ingest/streamelements/adapter';
import { createTwitchAdapter } from '../ingest/twitch/adapter';
import { createTrovoAdapter } from '../ingest/trovo/adapter';
import { createYoutubeAdapter } from '../ingest/youtube/adapter';
import { createLiveChats } from '../ingest/youtube/live-chats';
import { createYoutubeQuota } from '../ingest/youtube/quota';
import type { Settings } from '../kernel/settings';
import { tellingNowPlaying } from '../realtime/music';
import { discordGateway } from '../vendors/discord/gateway';
import type { HttpClients } from '../vendors/http/port';
import { spotifyPlayer } from '../vendors/spotify/player';
import { streamElementsApi } from '../vendors/streamelements/astro';
import { trovoOpenApi } from '../vendors/trovo/open-api';
import { createTwitch } from '../vendors/twitch/api';
import { youtubeDataApi } from '../vendors/youtube/data-api';
import type { OpenConnections } from './connections';
import type { Engines } from '../engines/engines';
import { type Guilds, guildsOf } from '../ingest/discord/guilds';
import { openHttp } from './http';
import { liveOf } from './services';
import type { Stops } from '../kernel/stops';

interface AdaptersDeps {
  settings: Settings;
  engines: Engines;
  log: Logger;
  metrics: Metrics;
  stops: Stops;
}

/** Connections to vendors that a process with the role `worker` holds. */
export function openAdapters(deps: AdaptersDeps, { tokens, living }: Pick<OpenConnections, 'tokens' | 'living'>): void {
  const { settings, engines, log, metrics, stops } = deps;
  if (!settings.roles.includes('worker')) return;
  const { projector_db: db, session, shares, records } = engines;
  const http = openHttp(deps);
  const guilds = guildsOf(living, settings.discord);
  stops.add(() => guilds.close());
  const running = startAdapters({
    adapters: [...adaptersOf(settings, http, metrics, db), ...othersOf(settings, http, metrics, engines, guilds)],
    ...linkedConnections({ living, tokens, guilds, bot_token: settings.discord.bot_token }),
    shares,
    leases: createLinkLeases(db, session),
    records,
    parked: createParkedWebhooks({ db, texts: createPersonalTexts(engines.subject_keys) }),
    log,
    metrics,
  });
  stops.add(() => running.stop());
}

/** One entry for each vendor that is held by a connection of ours. */
function adaptersOf(settings: Settings, http: HttpClients, metrics: Metrics, db: Database): Adapter[] {
  const { twitch, google, trovo, outgoing } = settings;
  const { allow_loopback } = outgoing;
  return [
    createTwitchAdapter({
      twitch: createTwitch(http, { ...twitch, allow_loopback }),
      client_id: twitch.client_id[0],
      metrics,
    }) as Adapter,
    createYoutubeAdapter({
      api: youtubeDataApi(http, google),
      quota: createYoutubeQuota({ db, daily_units: google.daily_quota }),
      chatsOf: createLiveChats(db),
    }) as Adapter,
    createTrovoAdapter({ api: trovoOpenApi(http, trovo) }) as Adapter,
  ];
}

/** What is connected beside the streaming platforms. */
function othersOf(
  settings: Settings,
  http: HttpClients,
  metrics: Metrics,
  engines: Engines,
  guilds: Guilds,
): Adapter[] {
  return [
    createStreamElementsAdapter(streamElementsApi(http, settings.streamelements)) as Adapter,
    createSpotifyAdapter({
      player: spotifyPlayer(http, settings.spotify),
      nowPlaying: tellingNowPlaying(liveOf(engines, metrics)),
    }) as Adapter,
    createDiscordAdapter({ gateway: discordGateway(http, settings.discord), accountOf: guilds.accountOf }) as Adapter,
  ];
}
