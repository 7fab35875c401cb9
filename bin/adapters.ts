import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import type { Database } from '../engines/postgres/port';
import { ReconnectRequired, TokenAway } from '../access/connection-tokens';
import type { Vendor } from '../domain/vendors';
import {
  type Adapter,
  ConnectionRefused,
  LinkLost,
  type LivingConnections,
  PauseAsked,
} from '../ingest/runtime/adapter';
import { startAdapters } from '../ingest/runtime/adapters';
import { createLinkLeases } from '../ingest/runtime/link-leases';
import { createPersonalTexts } from '../engines/subject-keys/texts';
import { createDeadLetters } from '../ingest/runtime/parked';
import { createDiscordAdapter } from '../ingest/discord';
import { createSpotifyAdapter } from '../ingest/spotify';
import { createStreamElementsAdapter } from '../ingest/streamelements';
import { createTwitchAdapter } from '../ingest/twitch/adapter';
import { createTrovoAdapter } from '../ingest/trovo-adapter';
import { createYoutubeAdapter } from '../ingest/youtube-adapter';
import { createLiveChats } from '../ingest/youtube-chats';
import { createYoutubeQuota } from '../ingest/youtube-quota';
import type { Settings } from '../kernel/settings';
import { nowPlaying } from '../realtime/music';
import { discordGateway } from '../vendors/discord/gateway';
import { createHttpClients } from '../vendors/http/client';
import type { HttpClients } from '../vendors/http/port';
import { spotifyPlayer } from '../vendors/spotify/player';
import { streamElementsApi } from '../vendors/streamelements/astro';
import { trovoOpenApi } from '../vendors/trovo/open-api';
import { createTwitch } from '../vendors/twitch/api';
import { youtubeDataApi } from '../vendors/youtube/data-api';
import type { OpenConnections } from './connections';
import type { Engines } from './engines';
import { DISCORD_BOT, type Guilds, guildsOf } from './guilds';
import { liveOf } from './services';
import type { Stops } from './stops';

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
  const { projector_db: db, session, shares, records, tracing } = engines;
  const http = createHttpClients({ metrics, tracing, allow_loopback: settings.outgoing.allow_loopback });
  stops.add(() => http.close());
  const guilds = guildsOf(living, settings.discord);
  stops.add(() => guilds.close());
  const running = startAdapters({
    adapters: [...adaptersOf(settings, http, metrics, db), ...othersOf(settings, http, metrics, engines, guilds)],
    connections: heldConnections(living, guilds),
    async token({ connection_id }, refused) {
      if (connection_id === DISCORD_BOT.connection_id) {
        if (refused !== undefined) throw new ConnectionRefused('no_token');
        return settings.discord.bot_token;
      }
      try {
        return await tokens.token(connection_id, refused);
      } catch (error) {
        if (error instanceof ReconnectRequired) throw new ConnectionRefused('no_token');
        if (!(error instanceof TokenAway)) throw error;
        const { message, retry_after_ms } = error;
        throw retry_after_ms === undefined
          ? new LinkLost(message, { cause: error })
          : new PauseAsked(message, retry_after_ms, { cause: error });
      }
    },
    // Whoever asks with the refused token has the connection flagged where no other one is to be had.
    async refused({ connection_id }) {
      if (connection_id === DISCORD_BOT.connection_id) return;
      const kept = await tokens.token(connection_id).catch(() => undefined);
      if (kept !== undefined) await tokens.token(connection_id, kept).catch(() => undefined);
    },
    shares,
    leases: createLinkLeases(db, session),
    records,
    parked: createDeadLetters({ db, texts: createPersonalTexts(engines.subject_keys) }),
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
  const live = liveOf(engines, metrics);
  return [
    createStreamElementsAdapter(streamElementsApi(http, settings.streamelements)) as Adapter,
    createSpotifyAdapter({
      player: spotifyPlayer(http, settings.spotify),
      async nowPlaying(account_id, state) {
        const { channel, message } = nowPlaying(account_id, state);
        await live.broadcast(channel, message);
      },
    }) as Adapter,
    createDiscordAdapter({ gateway: discordGateway(http, settings.discord), accountOf: guilds.accountOf }) as Adapter,
  ];
}

/** What has a token: a connection that nobody has gone through the vendor's login for is received by webhooks alone. */
function heldConnections(living: OpenConnections['living'], guilds: Guilds): LivingConnections {
  return {
    async list(vendor: Vendor) {
      // One connection for all servers that the bot was let into.
      if (vendor === 'discord') return (await guilds.any()) ? [DISCORD_BOT] : [];
      const all = await living.of(vendor);
      return all.flatMap(({ connection_id, account_id, platform_channel_id, client_id, kind, since }) =>
        kind === 'bot' || (kind === 'channel' && client_id === null)
          ? []
          : [{ connection_id, account_id, channel_id: platform_channel_id, client_id, since }],
      );
    },
    onChange: (changed) => living.onChange(changed),
  };
}
