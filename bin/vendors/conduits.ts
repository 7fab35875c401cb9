import { systemApp } from '../../services/connections/oauth-apps';
import type { Engines } from '../../engines/engines';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { LinkedConnections } from '../../ingest/runtime/connection/adapter';
import { Conduits } from '../../ingest/twitch/conduit/conduits';
import { startConduitKeeper } from '../../ingest/twitch/conduit/keeper';
import { offerConduits } from '../../ingest/twitch/conduit/offer';
import type { Settings } from '../../kernel/settings/settings';
import type { ShutdownStack } from '../../lib/async/shutdown-stack';
import type { HttpClients } from '../../vendors/http/port';
import { connections as projection } from '../../projections/connections/connections';
import { createBehind } from '../../projections/runtime/status/behind';
import { createTwitchConduits } from '../../vendors/twitch/conduits';

interface ConduitsDeps {
  settings: Settings;
  engines: Engines;
  log: Logger;
  metrics: Metrics;
  stops: ShutdownStack;
}

/** The conduit of the installation's Twitch app; undefined where the settings disable conduits. */
export function openConduits(
  { settings, engines, log, metrics, stops }: ConduitsDeps,
  http: HttpClients,
  connections: LinkedConnections,
): Conduits | undefined {
  const { twitch } = settings;
  if (!twitch.conduits) return undefined;
  const { projector_db: db, secrets, wakeups, leases, shares, events } = engines;
  const offer = offerConduits(shares);
  const conduits = new Conduits({
    ...{ db, wakeups, connections, log },
    twitch: createTwitchConduits(http, twitch),
    app: () => systemApp({ db, secrets, settings }, 'twitch'),
  }).start();
  const connectionsBehind = createBehind({ db, events }, projection);
  const keeper = startConduitKeeper({
    conduits,
    leases,
    shard_count: twitch.conduit_shards,
    metrics,
    connectionsBehind,
  });
  stops.add(() => Promise.all([keeper.stop(), conduits.stop(), offer.stop()]).then(() => undefined));
  return conduits;
}
