import type { Services } from '../app/services';
import { listenMetrics } from '../api/health/metrics-listener';
import { asOperator } from '../cli/admin/shared/operator';
import { SERVICE } from '../domain/common/vendors';
import type { Logger } from '../engines/log/port';
import { refuseForeignKeys } from '../privacy/secrets/foreign-keys';
import { EARLY_PLACES } from '../cli/runtime/encrypted-columns';
import { applyErasuresAtStart } from './upkeep/noted-erasures';
import { createPrometheusMetrics } from '../engines/metrics/prometheus';
import type { Settings } from '../kernel/settings/settings';
import { upgrade } from '../maintenance/upgrade/upgrade';
import { createReadModels } from '../projections/runtime/status/read-models';
import { createReadModelAvailability } from '../projections/runtime/status/read-model-availability';
import { PROJECTIONS, VERSIONS } from './areas';
import { openAdapters } from './vendors/adapters';
import { openCallers } from './callers';
import { chatCallsOf, openChat } from './vendors/chat';
import { openConnections } from './vendors/connections';
import type { Engines } from '../engines/engines';
import { openEngines } from './engines';
import { openFrontDoor } from './front-door';
import { openJobs } from './upkeep/jobs';
import { openLive } from './live';
import { openLiveWatch } from './vendors/live-watch';
import { reportBuild, reportProcess } from '../engines/metrics/process';
import { openProjector, startFollowers } from './projector';
import { createServices } from './services';
import { ShutdownStack } from '../lib/async/shutdown-stack';
import { VERSION } from './version';

/** A running Lumio process with the roles of its settings. */
export interface LumioNode {
  base_url: string;
  ws_url: string;
  metrics_url: string;
  engines: Engines;
  services: Services;
  /** Refuses new work, finishes running work, closes sockets (1012) and engines; idempotent. */
  stop(): Promise<void>;
}

export interface NodeOptions {
  settings: Settings;
  log: Logger;
  /** The database may belong to the other environment. Default false. */
  adopt?: boolean;
  /** Runs when everything but the front door is open, so that its changes precede the first request. */
  beforeListening?(parts: Services & Engines): Promise<void>;
  /** Called after the loss of an indispensable engine; the process should exit and be restarted. */
  onFatal(reason: string): void;
}

/** Starts every role of the settings; resolves once it serves. */
export async function startNode(options: NodeOptions): Promise<LumioNode> {
  const { settings, log, adopt, onFatal } = options;
  const metrics = createPrometheusMetrics({ service: SERVICE, env: settings.env });
  reportBuild(metrics, VERSION);

  const engines = await openEngines({ settings, log, metrics, serving: true, adopt, onLost: onFatal });
  const { events, wakeups } = engines;
  const stops = new ShutdownStack();
  stops.add(() => engines.close());
  try {
    await refuseForeignKeys(engines.db, engines.secrets, EARLY_PLACES);
    const unbuilt = createReadModelAvailability({ ...engines, log, projections: PROJECTIONS });
    stops.add(() => unbuilt.close());
    await unbuilt.look();
    const db = unbuilt.guard(engines.db);
    const deps = { settings, engines, db, log, metrics, stops };
    const callers = await openCallers(deps);

    const connections = openConnections(deps);
    // Stopped late: until the successors of the connections read, the other parts finish their work.
    const adapter_stops = new ShutdownStack();
    stops.add(() => adapter_stops.all());
    const chat = openChat(deps, connections);
    const jobs = openJobs(deps, connections.at_vendors, chatCallsOf(deps, chat, callers.logins));
    const runtime = openProjector(deps, jobs.jobs, unbuilt, onFatal);
    const { wait: wait_ms } = settings.read_models;
    const read_models =
      runtime?.read_models ?? createReadModels({ db, events, wakeups, unbuilt, versions: VERSIONS, wait_ms });
    const services = createServices({
      settings,
      engines,
      metrics,
      db,
      read_models,
      oauth: connections.vendors,
      chat,
      jobs: jobs.jobs,
      ...callers,
    });
    await upgrade({ db: engines.db, events, texts: services.texts }, asOperator('upgrade'));
    await applyErasuresAtStart(engines, log);
    await runtime?.start();
    await unbuilt.look();
    stops.add(() => runtime?.stop());
    const checks = await startFollowers(deps, jobs, runtime);
    const adapters = openAdapters({ ...deps, stops: adapter_stops }, connections, services.emotes);
    openLiveWatch(deps, connections);

    const end_report = reportProcess({ metrics, db, log });
    stops.add(() => end_report());
    const metrics_listener = await listenMetrics({ ...settings.metrics, render: () => metrics.render() });
    stops.add(() => metrics_listener.close());

    const live = openLive(deps, callers, services.emotes);
    const api = await openFrontDoor(deps, callers, { services, live, checks });
    // Other processes take over the connections while requests and jobs of this one finish.
    stops.add(() => adapters?.leave());
    await options.beforeListening?.({ ...services, ...engines });
    const base_url = await api.listen();
    const ws_url = `${base_url.replace(/^http/, 'ws')}/v1/ws`;
    return { base_url, ws_url, metrics_url: metrics_listener.url, engines, services, stop: stops.all };
  } catch (error) {
    await stops
      .all()
      .catch((failure: unknown) => log.error({ error: failure }, 'stopping after a failed start failed'));
    throw error;
  }
}
