import { createConnectionLookup } from '../../services/connections/connection-lookup';
import { createKickLook } from '../../ingest/kick/live';
import { createIntake } from '../../ingest/runtime/webhook/intake';
import { startLiveWatch } from '../../ingest/runtime/live-status/live-watch';
import { createTrovoLook } from '../../ingest/trovo/live';
import { createTwitchLook } from '../../ingest/twitch/live';
import { createYoutubeLook } from '../../ingest/youtube/live';
import { createYoutubeQuota } from '../../ingest/youtube/quota';
import { kickChannels } from '../../vendors/kick/channels';
import { trovoOpenApi } from '../../vendors/trovo/open-api';
import { twitchStreams } from '../../vendors/twitch/streams';
import { youtubeDataApi } from '../../vendors/youtube/data-api';
import type { CallersDeps } from '../callers';
import type { OpenConnections } from './connections';
import { openHttp } from './http';

/** Starts polling the connected channels for broadcasts and viewer numbers in a process with the role `worker`. */
export function openLiveWatch(deps: CallersDeps, { living, tokens }: OpenConnections): void {
  const { settings, engines, log, metrics, stops } = deps;
  if (!settings.roles.includes('worker')) return;
  const { projector_db: db, records, shares } = engines;
  const { twitch, google, kick, trovo, live } = settings;
  const http = openHttp(deps);
  const lookup = createConnectionLookup(engines);
  stops.add(() => lookup.close());
  const quota = createYoutubeQuota({ db, daily_units: google.daily_quota });
  const watch = startLiveWatch({
    looks: [
      createTwitchLook(twitchStreams(http, twitch), tokens),
      createYoutubeLook(youtubeDataApi(http, google), tokens, quota),
      createKickLook(kickChannels(http, kick), tokens),
      createTrovoLook(trovoOpenApi(http, trovo)),
    ],
    living,
    db,
    shares,
    intake: createIntake({ connections: lookup, records, log }),
    log,
    metrics,
    every_ms: live.look_every,
  });
  stops.add(() => watch.stop());
}
