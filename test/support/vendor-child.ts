import type { ActiveConnection as WatchedConnection } from '../../services/connections/active-connections';
import type { Vendor } from '../../domain/common/vendors';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import { PostgresDatabase } from '../../engines/postgres/pool';
import type { Database } from '../../engines/postgres/port';
import { createRecordLog } from '../../engines/records/log';
import type { RecordLog } from '../../engines/records/port';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import { createDiscordAdapter } from '../../ingest/discord/adapter';
import type { Adapter, LinkedConnection } from '../../ingest/runtime/connection/adapter';
import { createKickLook } from '../../ingest/kick/live';
import { createIntake } from '../../ingest/runtime/webhook/intake';
import type { LinkTimings } from '../../ingest/runtime/connection/link-timings';
import { startLiveWatch } from '../../ingest/runtime/live-status/live-watch';
import { createSpotifyAdapter } from '../../ingest/spotify/adapter';
import { createStreamElementsAdapter } from '../../ingest/streamelements/adapter';
import { createTrovoAdapter } from '../../ingest/trovo/adapter';
import { createYoutubeAdapter } from '../../ingest/youtube/adapter';
import { createLiveChats } from '../../ingest/youtube/live-chats';
import { createYoutubeQuota } from '../../ingest/youtube/quota';
import { discordGateway } from '../../vendors/discord/gateway';
import type { HttpClients } from '../../vendors/http/port';
import { kickChannels } from '../../vendors/kick/channels';
import { spotifyPlayer } from '../../vendors/spotify/player';
import { streamElementsApi } from '../../vendors/streamelements/astro';
import { trovoOpenApi } from '../../vendors/trovo/open-api';
import { youtubeDataApi } from '../../vendors/youtube/data-api';
import { TEST_KEYS } from './parked';
import { silentLog } from './log';
import { startWorker, type WorkerOptions } from './twitch';
import { connectionsOf } from './webhooks';

/** What the process is given, as JSON. */
export interface VendorChildGiven {
  /** Of the database. */
  url: string;
  /** Where the fakes are. */
  twitch: { base_url: string; eventsub_url: string };
  youtube: { base_url: string };
  trovo: { base_url: string; chat_url: string };
  streamelements: { base_url: string; astro_url: string };
  discord: { base_url: string; account_id: string };
  spotify: { base_url: string };
  /** Looked at, not held. */
  kick: { base_url: string; watched: readonly WatchedConnection[] };
  connections: Partial<Record<Vendor, readonly LinkedConnection[]>>;
  /** By connection. */
  tokens: Record<string, string>;
  timings?: Partial<LinkTimings>;
  stop_within_ms?: number;
}

/** Connections that replace those of before, by a message over the channel between processes. */
export type VendorChildMessage = Pick<VendorChildGiven, 'connections' | 'tokens'>;

/** So much silence of the database is an outage; in production it is more. */
const QUERY_TIMEOUT_MS = 3_000;
const ENOUGH_UNITS = 100_000_000;
/** Sooner than in production, so that a test sees many looks. */
const PLAYER = { playing_ms: 300, paused_ms: 300 };
const LOOK_MS = 400;

const beside = (db: Database, given: VendorChildGiven) => (http: HttpClients) => {
  const { youtube, trovo, streamelements, discord, spotify } = given;
  const tips = { api_url: streamelements.base_url, astro_url: streamelements.astro_url };
  return [
    createYoutubeAdapter({
      api: youtubeDataApi(http, { api_url: youtube.base_url }),
      quota: createYoutubeQuota({ db, daily_units: ENOUGH_UNITS }),
      chatsOf: createLiveChats(db),
    }),
    createTrovoAdapter({ api: trovoOpenApi(http, { api_url: trovo.base_url, chat_url: trovo.chat_url }) }),
    createStreamElementsAdapter(streamElementsApi(http, tips)),
    createDiscordAdapter({
      gateway: discordGateway(http, { api_url: discord.base_url }),
      accountOf: () => Promise.resolve(discord.account_id),
      commands: { useOf: async () => null, interactionOf: async () => null },
      shards: { atLeast: () => Promise.resolve(1) },
    }),
    createSpotifyAdapter({
      player: spotifyPlayer(http, { api_url: spotify.base_url }),
      nowPlaying: () => Promise.resolve(),
      timings: PLAYER,
    }),
  ] as Adapter[];
};

/** Looks at what is on air at Kick, which posts everything else. */
const watchingKick =
  ({ kick, tokens }: VendorChildGiven, db: Database, records: RecordLog): WorkerOptions['watching'] =>
  ({ http, shares, metrics }) =>
    startLiveWatch({
      looks: [
        createKickLook(kickChannels(http, { api_url: kick.base_url }), {
          token: (connection_id) => Promise.resolve(tokens[connection_id]!),
        }),
      ],
      living: { of: () => Promise.resolve([...kick.watched]), onChange: () => () => undefined },
      db,
      shares,
      intake: createIntake({ connections: connectionsOf({}, null), records, log: silentLog }),
      log: silentLog,
      metrics,
      pieces: 1,
      every_ms: LOOK_MS,
    });

/**
 * A process of its own that holds connections to the fakes, to be killed, paused and cut off by a test.
 * Usage: node vendor-child.js '{@link VendorChildGiven}'
 */
function main([text]: string[]): void {
  const given = JSON.parse(text!) as VendorChildGiven;
  const { url, twitch, timings = {}, stop_within_ms } = given;
  let { connections, tokens } = given;
  const listeners = new Set<() => void>();
  process.on('message', (message: VendorChildMessage) => {
    ({ connections, tokens } = message);
    for (const listener of listeners) listener();
  });
  const db = new PostgresDatabase({ url, name: 'child', size: 6, query_timeout_ms: QUERY_TIMEOUT_MS });
  const wakeups = createPostgresWakeups({ url });
  const subject_keys = createSubjectKeys({ db, master_keys: TEST_KEYS });
  const records = createRecordLog({ broker: createPostgresBroker({ pool: db.pool, wakeups }), subject_keys });
  const worker = startWorker({
    db,
    url,
    twitch,
    beside: beside(db, given),
    connections: {
      list: (vendor) => Promise.resolve(connections[vendor] ?? []),
      onChange(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      token: ({ connection_id }) => Promise.resolve(tokens[connection_id]!),
      refused: [],
    },
    watching: watchingKick(given, db, records),
    records,
    log: silentLog,
    timings,
    stop_within_ms,
    wakeups,
    heartbeat_ms: 1_000,
  });
  process.once('SIGTERM', () => void worker.stop().then(() => process.exit(0)));
  process.stdout.write('running\n');
}

main(process.argv.slice(2));
