import { join } from 'node:path';
import type { Services } from '../app/services';
import { createConnectionLookup } from '../services/connections/connection-lookup';
import { connections } from '../projections/connections/connections';
import { createBehind } from '../projections/runtime/status/behind';
import { credentialsOf } from '../api/http/requests/credentials';
import type { HealthCheck } from '../api/health/health';
import { registerLivePage } from '../api/documents/live-page';
import { registerOverlayPage } from '../api/documents/overlay-page';
import { requestHost } from '../api/http/requests/client-ip';
import { createApi } from '../api/server';
import { createFirstSubscriptions } from '../ingest/kick/first-subscriptions';
import { createFirstMessages } from '../ingest/runtime/parse/first-messages';
import { createParkedWebhooks } from '../ingest/runtime/parked/parked';
import { TOPICS } from '../domain/common/records';
import { openWebhookDoor } from '../ingest/runtime/webhook/door';
import { webhookRoutes } from '../ingest/runtime/webhook/webhooks';
import { CHANNELS, OPERATIONS } from './areas';
import { openPaypal } from './vendors/paypal';
import type { Callers, CallersDeps } from './callers';
import {
  blobsCheck,
  brokerCheck,
  cacheCheck,
  databaseCheck,
  eventStoreCheck,
  outboxCheck,
  timeseriesCheck,
} from '../api/health/health-checks';
import type { openLive } from './live';
import { VERSION } from './version';

export interface FrontDoorParts {
  services: Services;
  live: ReturnType<typeof openLive>;
  /** Health checks of this process's roles. */
  checks: readonly HealthCheck[];
}

/** Opens HTTP for the roles `api` and `ingest`, the WebSocket upgrade, and health; does not listen yet. */
export async function openFrontDoor(deps: CallersDeps, { resolver }: Callers, parts: FrontDoorParts) {
  const { settings, engines, db, log, metrics, stops } = deps;
  const { broker, records, events, relay, tracing } = engines;
  const { services, live, checks } = parts;
  const { realtime } = live;
  const lookup = createConnectionLookup({ db, relay, secrets: engines.secrets });
  stops.add(() => lookup.close());
  if (settings.roles.includes('api')) await engines.session.ready();
  if (settings.roles.includes('ingest')) {
    const storable = () => broker.bounds(TOPICS.platform_events);
    const door = openWebhookDoor({ db, storable, log, metrics });
    stops.add(() => door.close());
  }
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
          first_messages: createFirstMessages({ db, records, subject_keys: engines.subject_keys }),
          emotes: services.emotes,
          first_subscriptions: createFirstSubscriptions(db),
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
        ...(realtime ? [outboxCheck(realtime)] : []),
      ],
      websocket: live.stats,
    },
    metrics,
    tracing,
    log,
    version: VERSION,
    extend(app) {
      const folder = join(__dirname, '../web');
      registerLivePage(app, settings, folder);
      const hostOf = requestHost(settings.trusted_proxies);
      registerOverlayPage(app, settings, folder, ({ raw }) => hostOf(raw));
    },
    websocket: realtime && ((req, socket, head) => realtime.handleUpgrade(req, socket, head)),
  });
  stops.add(() => api.close());
  if (realtime) stops.add(live.stop);
  return api;
}
