import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { Database } from '../../engines/postgres/port';
import type { Adapter } from '../../ingest/runtime/connection/adapter';
import { type RunningAdapters, startAdapters } from '../../ingest/runtime/connection/adapters';
import { createFirstMessages } from '../../ingest/runtime/parse/first-messages';
import { createLinkLeases } from '../../ingest/runtime/connection/link-leases';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { linkedConnections } from '../../ingest/runtime/connection/linked-connections';
import { createParkedWebhooks } from '../../ingest/runtime/parked/parked';
import { createDiscordCommands } from '../../ingest/discord/commands';
import { createDiscordAdapter } from '../../ingest/discord/adapter';
import { createSpotifyAdapter } from '../../ingest/spotify/adapter';
import { accountsOnAir } from '../../ingest/spotify/on-air';
import { createStreamElementsAdapter } from '../../ingest/streamelements/adapter';
import { createTwitchAdapter } from '../../ingest/twitch/adapter';
import { createShardAdapter } from '../../ingest/twitch/conduit/shard';
import { createLastKnown } from '../../ingest/twitch/last-known';
import { createTrovoAdapter } from '../../ingest/trovo/adapter';
import { createYoutubeAdapter } from '../../ingest/youtube/adapter';
import { createLiveChats } from '../../ingest/youtube/live-chats';
import { createYoutubeQuota } from '../../ingest/youtube/quota';
import type { ChannelEmotes } from '../../services/chat/emotes';
import type { Settings } from '../../kernel/settings/settings';
import { createNowPlayingPublisher } from '../../realtime/control/music';
import { isAnsweredInDiscord, isDiscordCommand } from '../../services/automation/discord-commands';
import { createDiscordBuckets } from '../../services/discord/buckets';
import { discordRest } from '../../vendors/discord/rest';
import { discordGateway } from '../../vendors/discord/gateway';
import type { HttpClients } from '../../vendors/http/port';
import { spotifyPlayer } from '../../vendors/spotify/player';
import { streamElementsApi } from '../../vendors/streamelements/astro';
import { trovoOpenApi } from '../../vendors/trovo/open-api';
import { createTwitch } from '../../vendors/twitch/api';
import { youtubeDataApi } from '../../vendors/youtube/data-api';
import type { OpenConnections } from './connections';
import { openConduits } from './conduits';
import type { Engines } from '../../engines/engines';
import { type Guilds, guildsOf } from '../../ingest/discord/guilds';
import { createShards, type Shards } from '../../ingest/discord/shards';
import { openHttp } from './http';
import { liveOf } from '../services';
import type { ShutdownStack } from '../../lib/async/shutdown-stack';

interface AdaptersDeps {
  settings: Settings;
  engines: Engines;
  log: Logger;
  metrics: Metrics;
  stops: ShutdownStack;
}

/** Part of the shutdown time that is left for closing the engines when the last connection has been handed over. */
const ENGINES_MS = 250;

/** Opens connections to vendors in a process with the role `worker`; returns null in others. */
export function openAdapters(
  deps: AdaptersDeps,
  { tokens, living }: Pick<OpenConnections, 'tokens' | 'living'>,
  emotes: ChannelEmotes,
): Pick<RunningAdapters, 'leave'> | null {
  const { settings, engines, log, metrics, stops } = deps;
  if (!settings.roles.includes('worker')) return null;
  const { projector_db: db, session, shares, records } = engines;
  const http = openHttp(deps);
  const guilds = guildsOf(living, settings.discord);
  const discord_shards = createShards({ db, metrics });
  stops.add(() => guilds.close());
  const linked = linkedConnections({
    ...{ living, tokens, guilds, shards: discord_shards },
    bot_token: settings.discord.bot_token,
  });
  const twitch = createTwitch(http, { ...settings.twitch, allow_loopback: settings.outgoing.allow_loopback });
  const conduits = openConduits(deps, http, linked.connections);
  const running = startAdapters({
    adapters: [
      createTwitchAdapter({
        ...{ twitch, client_id: settings.twitch.client_id[0], conduits, metrics },
        lastKnown: createLastKnown(db),
        subscription_calls: settings.twitch.subscription_calls,
      }) as Adapter,
      ...(conduits ? [createShardAdapter({ conduits, twitch, refused: linked.refused }) as Adapter] : []),
      ...adaptersOf(settings, http, db),
      ...othersOf(settings, http, metrics, engines, { guilds, shards: discord_shards, log }),
    ],
    ...linked,
    shares,
    leases: createLinkLeases(db, session),
    records,
    parked: createParkedWebhooks({ db, texts: createPersonalTexts(engines.subject_keys) }),
    first_messages: createFirstMessages({ db, records, subject_keys: engines.subject_keys }),
    emotes,
    log,
    metrics,
    stop_within_ms: Math.max(settings.stop_within - ENGINES_MS, settings.stop_within / 2),
  });
  stops.add(() => running.stop());
  return running;
}

/** Adapters of the vendors that Lumio holds a connection to. */
function adaptersOf({ google, trovo }: Settings, http: HttpClients, db: Database): Adapter[] {
  return [
    createYoutubeAdapter({
      api: youtubeDataApi(http, google),
      quota: createYoutubeQuota({ db, daily_units: google.daily_quota }),
      chatsOf: createLiveChats(db),
    }) as Adapter,
    createTrovoAdapter({ api: trovoOpenApi(http, trovo) }) as Adapter,
  ];
}

/** Adapters besides those of the streaming platforms. */
function othersOf(
  settings: Settings,
  http: HttpClients,
  metrics: Metrics,
  engines: Engines,
  { guilds, shards, log }: { guilds: Guilds; shards: Shards; log: Logger },
): Adapter[] {
  return [
    createStreamElementsAdapter(streamElementsApi(http, settings.streamelements)) as Adapter,
    createSpotifyAdapter({
      player: spotifyPlayer(http, settings.spotify),
      nowPlaying: createNowPlayingPublisher(liveOf(engines, metrics)),
      isOnAir: accountsOnAir(engines.projector_db),
      db: engines.projector_db,
    }) as Adapter,
    createDiscordAdapter({
      gateway: discordGateway(http, settings.discord),
      accountOf: guilds.accountOf,
      shards,
      commands: createDiscordCommands({
        isCommand: (account_id, word) => isDiscordCommand(engines.projector_db, account_id, word),
        isAnswered: (of) => isAnsweredInDiscord(engines.projector_db, of),
        onFailed: (err) => log.info({ err }, 'an interaction of Discord was not looked up or acknowledged'),
        rest: discordRest(http, settings.discord, createDiscordBuckets(engines.db)),
      }),
    }) as Adapter,
  ];
}
