import { createAccessChanges } from '../access/changes';
import { createFeatureFlags } from '../access/features';
import { createMemberPermissions } from '../access/memberships';
import { createCounts } from '../access/counts';
import { createCallerResolver } from '../access/resolve';
import { createRevocationTail } from '../access/revocations';
import type { Services } from '../access/services';
import type { Role, Settings } from '../kernel/settings';
import { createTokens } from '../access/tokens';
import { listenMetrics } from '../api/metrics-listener';
import { createApi } from '../api/server';
import { SERVICE } from '../domain/vendors';
import type { Logger } from '../engines/log/port';
import { createPrometheusMetrics } from '../engines/metrics/prometheus';
import { createPersonalTexts } from '../engines/subject-keys/texts';
import { asOperator } from '../cli/admin/operator';
import { createDeadLetters } from '../ingest/runtime/parked';
import { webhookRoutes } from '../ingest/runtime/webhooks';
import { createArchiveReader } from '../maintenance/archive-reader';
import { adoptChannelNames } from '../maintenance/channel-name-adoption';
import { adoptFeatureFlags } from '../maintenance/feature-flag-adoption';
import { createReadModels } from '../projections/runtime/read-models';
import { createProjectionRuntime } from '../projections/runtime/runtime';
import { createUnbuilt } from '../projections/runtime/unbuilt';
import { startReactors } from '../reactors/runtime/runtime';
import { createRealtime } from '../realtime/runtime/service';
import { createConnectionLookup } from '../access/connection-lookup';
import { clientIp } from './client-ip';
import { type Engines, openEngines } from './engines';
import {
  blobsCheck,
  brokerCheck,
  cacheCheck,
  databaseCheck,
  eventStoreCheck,
  reactorsCheck,
  projectionsCheck,
  timeseriesCheck,
} from './health';
import { reportProcess } from './process-metrics';
import { CHANNELS, OPERATIONS, PROJECTIONS, REACTORS } from './areas';
import { freeBytes } from './free-bytes';
import { openJobs } from './jobs';
import { startRelays } from './relays';
import { createServices, metadata } from './services';
import { VERSION } from './version';

/** A running Lumio process with the roles of its settings. */
export interface LumioNode {
  base_url: string;
  ws_url: string;
  metrics_url: string;
  engines: Engines;
  services: Services;
  /** Refuses new work, finishes what is under way, closes sockets (1012) and engines; safe to call twice. */
  stop(): Promise<void>;
}

export interface NodeOptions {
  settings: Settings;
  log: Logger;
  /** The database may belong to the other environment. Default false. */
  adopt?: boolean;
  /** Runs when everything but the front door is up: what it changes is changed before anybody can ask. */
  beforeListening?(parts: Services & Engines): Promise<void>;
  /** Something that this process cannot go on without is gone; the process should end and be started again. */
  onFatal(reason: string): void;
}

/** Starts every role of the settings and resolves when it serves. */
export async function startNode(options: NodeOptions): Promise<LumioNode> {
  const { settings, log } = options;
  const started = Date.now();
  const has = (role: Role) => settings.roles.includes(role);
  const metrics = createPrometheusMetrics({ service: SERVICE, env: settings.env });
  metrics.gauge(`${SERVICE}_build_info`, 'The running build', ['version']).set(1, { version: VERSION });
  const uptime = metrics.gauge(`${SERVICE}_uptime_seconds`, 'Seconds since this process started');
  metrics.beforeRender(() => uptime.set((Date.now() - started) / 1000));

  const engines = await openEngines({
    settings,
    log,
    metrics,
    serving: true,
    adopt: options.adopt,
    onLost: options.onFatal,
  });
  const { relay, events, broker, records, wakeups, tracing } = engines;
  const stops: (() => unknown)[] = [() => engines.close()];
  const stop = atMostOnce(async () => {
    const failures: unknown[] = [];
    for (const part of stops.reverse()) {
      try {
        await part();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'stopping failed');
  });

  try {
    const unbuilt = createUnbuilt({ ...engines, log, projections: PROJECTIONS });
    stops.push(() => unbuilt.close());
    await unbuilt.look();
    const db = unbuilt.guard(engines.db);
    const tokens = await createTokens({ db, secrets: engines.secrets });
    const features = createFeatureFlags({ db });
    const counts = createCounts({ limits: engines.rate_limits, log, metrics });
    const resolver = createCallerResolver({ db, tokens, log, counts, system_keys: settings.auth.system_keys });
    stops.push(() => resolver.close());
    const tail = createRevocationTail({ db, log });
    stops.push(() => tail.stop());
    const members = createMemberPermissions({ db });
    const forget = [resolver.forget, features.forget, members.forget];
    const access = createAccessChanges({ relay, tail, forget });
    stops.push(() => access.close());

    const runtime = has('projector')
      ? createProjectionRuntime({
          db: engines.projector_db,
          broker,
          records,
          events,
          wakeups,
          shares: engines.shares,
          log,
          metrics,
          tracing,
          projections: PROJECTIONS,
          unbuilt,
          versions: VERSIONS,
          freeBytes: () => freeBytes(settings),
          readArchived: createArchiveReader(engines),
          keep_outbox_ms: settings.realtime.resume_window + 60_000,
          onFatal: (error) => options.onFatal(error.message),
        })
      : undefined;
    const read_models = runtime?.read_models ?? createReadModels({ db, events, wakeups, unbuilt, versions: VERSIONS });
    const services = createServices({ settings, engines, db, read_models, features, tokens, access });
    await adoptFeatureFlags(
      {
        db: engines.db,
        events,
        commit: ({ caller, context }, writes) => events.append(writes, metadata(caller, context)),
      },
      asOperator('upgrade'),
    );
    await adoptChannelNames({ db, texts: createPersonalTexts(engines.subject_keys) });
    await runtime?.start();
    await unbuilt.look();
    stops.push(() => runtime?.stop());

    if (has('projector')) {
      const relays = startRelays(engines, log, metrics);
      stops.push(() => relays.stop());
    }
    const { jobs, start: startJobs, close: closeJobs } = openJobs(settings, engines, log, metrics);
    stops.push(() => closeJobs());
    const reactors = has('projector')
      ? await startReactors({
          db: engines.projector_db,
          events,
          shares: engines.shares,
          log,
          metrics,
          reactors: REACTORS,
          jobs,
        })
      : undefined;
    stops.push(() => reactors?.stop());
    const running_jobs = await startJobs();
    stops.push(() => running_jobs?.stop());

    const end_report = reportProcess({ metrics, db, log });
    stops.push(() => end_report());
    const metrics_listener = await listenMetrics({ ...settings.metrics, render: () => metrics.render() });
    stops.push(() => metrics_listener.close());

    const realtime = has('realtime')
      ? createRealtime({
          settings,
          db,
          wakeups,
          relay,
          families: CHANNELS,
          presence: engines.presence,
          features,
          resolve: (credentials) => resolver.resolve(credentials),
          permissions_on: members.permissionsOn,
          client_ip: clientIp(settings.trusted_proxies),
          again: resolver.again,
          on_revoked: (listener) => tail.on(listener),
          counts,
          epoch: engines.installation.epoch,
          version: VERSION,
          log,
          metrics,
          tracing,
        })
      : undefined;

    // Again as one of the last, since sockets are told before the front door closes; here in case the start fails
    // before it is open.
    const stopRealtime = atMostOnce(async () => realtime?.stop());
    stops.push(stopRealtime);

    const websocket = () => realtime?.stats() ?? { sessions: 0, channels: 0 };
    const sessions = metrics.gauge(`${SERVICE}_websocket_sessions`, 'Connected WebSocket sessions');
    const channels = metrics.gauge(`${SERVICE}_websocket_channels`, 'Channels with at least one subscriber');
    metrics.beforeRender(() => {
      sessions.set(websocket().sessions);
      channels.set(websocket().channels);
    });
    const lookup = createConnectionLookup({ db, relay, secrets: engines.secrets });
    stops.push(() => lookup.close());
    if (has('api')) await engines.session.ready();
    const api = await createApi({
      settings,
      operations: OPERATIONS,
      services,
      resolveCaller: async ({ headers, query, ip }) => {
        return resolver.resolve({
          authorization: headers.authorization,
          query_token: typeof query.token === 'string' ? query.token : undefined,
          on_upgrade: false,
          account_header: single(headers['x-lumio-account']),
          ip,
          now: Date.now(),
        });
      },
      holder: engines.session,
      rate_limits: engines.rate_limits,
      webhooks: has('ingest')
        ? webhookRoutes({
            settings: settings.webhooks,
            connections: lookup,
            records,
            parked: createDeadLetters({ db }),
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
          ...(reactors ? [reactorsCheck(reactors)] : []),
          ...(runtime ? [projectionsCheck(runtime)] : []),
        ],
        websocket,
      },
      metrics,
      tracing,
      log,
      version: VERSION,
      websocket: realtime && ((req, socket, head) => realtime.handleUpgrade(req, socket, head)),
    });
    stops.push(() => api.close());
    if (realtime) stops.push(stopRealtime);
    await options.beforeListening?.({ ...services, ...engines });
    const base_url = await api.listen();
    return {
      base_url,
      ws_url: `${base_url.replace(/^http/, 'ws')}/v1/ws`,
      metrics_url: metrics_listener.url,
      engines,
      services,
      stop,
    };
  } catch (error) {
    await stop().catch((failure: unknown) => log.error({ error: failure }, 'stopping after a failed start failed'));
    throw error;
  }
}

const VERSIONS: ReadonlyMap<string, number> = new Map(PROJECTIONS.map(({ name, version }) => [name, version]));

const single = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

function atMostOnce(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= work());
}
