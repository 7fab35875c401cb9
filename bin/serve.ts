import type { Services } from '../app/services';
import { METRICS_PORT } from '../kernel/settings/settings';
import { createLog } from '../engines/log/pino';
import { holdDataFolder } from '../engines/data-folder';
import { keepDevelopmentSecrets } from '../demo/credentials';
import { addDevelopment } from '../demo/development';
import { removeDemoData } from '../demo/removal';
import { livePageAddress } from '../api/documents/live-page';
import type { Engines } from '../engines/engines';
import type { RecordLog } from '../engines/records/port';
import { recordEnvironment } from '../engines/postgres/embedded/environment';
import { portInUse } from '../cli/runtime/port-in-use';
import { processEnd } from '../cli/runtime/process-end';
import { ShutdownStack } from '../lib/async/shutdown-stack';
import { startNode } from './node';
import { readSettings } from './read-settings';
import { VERSION } from './version';

export interface RunningNode {
  base_url: string;
  data_dir: string;
  /** Resolves with the exit code when the process has stopped after a signal or the loss of an engine. */
  readonly ended: Promise<number>;
  readonly records: RecordLog;
  stop(): void;
}

/** Starts and prints one line, `lumio ready at …`. @throws Error with a one-line message when it cannot start */
export async function serve({ adopt = false }: { adopt?: boolean } = {}): Promise<RunningNode> {
  const settings = readSettings();
  const { log } = createLog(settings.log_level, { readable: settings.env === 'development' && process.stdout.isTTY });
  const began = performance.now();
  log.info({ version: VERSION, node: process.version, roles: settings.roles, env: settings.env }, 'starting');
  const folder = holdDataFolder(settings.data_dir);
  const stops = new ShutdownStack();
  stops.add(() => folder.release());
  const end = processEnd(log, stops, settings.stop_within);
  try {
    const { data_dir, env } = settings;
    const beforeListening = async (parts: Services & Engines) => {
      if (adopt && env === 'production') await removeDemoData(parts, data_dir);
      if (adopt) await recordEnvironment(parts.db, env);
      if (env === 'development') keepDevelopmentSecrets(data_dir);
    };
    const node = await startNode({
      settings,
      log,
      adopt,
      // Before the port is open, so that a demo key never works for a request.
      beforeListening,
      onFatal: (reason) => end.stop(1, reason),
    });
    stops.add(() => node.stop());
    if (settings.metrics.port === undefined && !node.metrics_url.endsWith(`:${METRICS_PORT}/metrics`)) {
      log.warn({ metrics_url: node.metrics_url }, `port ${METRICS_PORT} is taken: metrics are served on another`);
    }
    let live_page: string | null = null;
    if (settings.env === 'development') {
      const { subject_keys } = node.engines;
      const access_token = await addDevelopment({ ...node, subject_keys, log }, stops);
      live_page = livePageAddress(node.base_url, settings, access_token);
    }
    const lines = [`lumio ready at ${node.base_url}`, ...(live_page ? [`lumio: live page at ${live_page}`] : [])];
    folder.serveAt(node.base_url);
    const ms = Math.round(performance.now() - began);
    log.info({ base_url: node.base_url, metrics_url: node.metrics_url, ms }, 'serving');
    if (!end.stopping) process.stdout.write(`${lines.join('\n')}\n`);
    const { records } = node.engines;
    const { ended, stop } = end;
    return { base_url: node.base_url, data_dir, ended, records, stop: () => stop(0, 'asked') };
  } catch (error) {
    await stops.all();
    throw portInUse(error, settings) ?? error;
  }
}
