import { join } from 'node:path';
import type { Services } from '../access/services';
import { createConnectionLookup } from '../access/connection-lookup';
import { connections } from '../projections/connections';
import { createBehind } from '../projections/runtime/behind';
import { credentialsOf } from '../api/credentials';
import type { HealthCheck } from '../api/health';
import { registerLivePage } from '../api/live-page';
import { createApi } from '../api/server';
import { createParkedWebhooks } from '../ingest/runtime/parked';
import { webhookRoutes } from '../ingest/runtime/webhooks';
import { CHANNELS, OPERATIONS } from './areas';
import { openPaypal } from './paypal';
import type { Callers, CallersDeps } from './callers';
import {
  blobsCheck,
  brokerCheck,
  cacheCheck,
  databaseCheck,
  eventStoreCheck,
  timeseriesCheck,
} from '../api/health-checks';
import type { openLive } from './live';
import { VERSION } from './version';

export interface FrontDoorParts {
  services: Services;
  live: ReturnType<typeof openLive>;
  /** Of the roles that this process has. */
  checks: readonly HealthCheck[];
}

/** HTTP for the roles `api` and `ingest`, the upgrade to WebSocket, and health; it does not listen yet. */
export async function openFrontDoor(deps: CallersDeps, { resolver }: Callers, parts: FrontDoorParts) {
  const { settings, engines, db, log, metrics, stops } = deps;
  const { broker, records, events, relay, tracing } = engines;
  const { services, live, checks } = parts;
  const { realtime } = live;
  const lookup = createConnectionLookup({ db, relay, secrets: engines.secrets });
  stops.add(() => lookup.close());
  if (settings.roles.includes('api')) await engines.session.ready();
  const api = await createApi({
    settings,
    operations: OPERATIONS,
    channels: CHANNELS,
    services,
    resolveCaller: (source) => resolver.resolve(credentialsOf(source)),
    holder: engines.session,
    rate_limits: engines.rate_limits,
    webhooks: settings.roles.includes('ingest')
      ? webhookRoutes({
          settings,
          paypal: openPaypal(deps),
          connections: lookup,
          connectionsBehind: createBehind({ db, events }, connections),
          records,
          parked: createParkedWebhooks({ db, texts: services.texts }),
          log,
          metrics,
        })
      : [],
    health: {
      checks: [
        databaseCheck(db),
        timeseriesCheck(engines.db),
        cacheCheck(engines.cache),
        brokerCheck(broker),
        eventStoreCheck(events),
        blobsCheck(engines.blobs),
        ...checks,
      ],
      websocket: live.stats,
    },
    metrics,
    tracing,
    log,
    version: VERSION,
    extend: (app) => registerLivePage(app, settings, join(__dirname, '../web')),
    websocket: realtime && ((req, socket, head) => realtime.handleUpgrade(req, socket, head)),
  });
  stops.add(() => api.close());
  if (realtime) stops.add(live.stop);
  return api;
}
