import type { Services } from '../access/services';
import { METRICS_PORT, type Settings } from '../kernel/settings';
import { createLog } from '../engines/log/pino';
import { holdDataFolder } from './data-folder';
import { ensureDemoData } from '../demo/data';
import { keepDevCredentials, keepDevelopmentSecrets } from '../demo/credentials';
import { removeDemoData } from '../demo/removal';
import { livePageAddress } from '../api/live-page';
import { NotBuilt } from '../kernel/errors';
import { retry } from '../kernel/retry';
import type { Engines } from './engines';
import type { RecordLog } from '../engines/records/port';
import { recordEnvironment } from '../engines/postgres/environment';
import { startNode } from './node';
import { readSettings } from './read-settings';

/** Longest time between a signal and the end of the process; a supervisor's patience is usually 10 s. */
const STOP_WITHIN_MS = 9_000;
/**
 * Longest time after the loss of an engine: what waits for it waits in vain, and the process that is started next can
 * serve.
 */
const END_WITHIN_MS = 2_000;

export interface Running {
  base_url: string;
  data_dir: string;
  /** Resolves with the exit code when the process has stopped by a signal or because an engine was lost. */
  readonly ended: Promise<number>;
  readonly records: RecordLog;
  stop(): void;
}

/** Starts and prints the one line `lumio ready at …`. @throws Error in one clear line when it cannot start. */
export async function serve({ adopt = false }: { adopt?: boolean } = {}): Promise<Running> {
  const settings = readSettings();
  const { log } = createLog(settings.log_level);
  const folder = holdDataFolder(settings.data_dir);
  let end: (code: number) => void = () => undefined;
  const ended = new Promise<number>((resolve) => (end = resolve));
  let stopAll = async () => folder.release();
  let stopping = false;
  const stop = (code: number, reason: string) => {
    if (stopping) return;
    stopping = true;
    const lost = code !== 0;
    log[lost ? 'error' : 'info']({ reason }, 'stopping');
    const after_ms = lost ? END_WITHIN_MS : STOP_WITHIN_MS;
    const late = setTimeout(() => {
      log[lost ? 'warn' : 'error']({ after_ms }, 'stopping took too long; ending now');
      end(1);
    }, after_ms);
    stopAll()
      .then(
        () => end(code),
        (error: unknown) => {
          log.error({ error }, 'stopping failed');
          end(1);
        },
      )
      .finally(() => clearTimeout(late));
  };
  process.once('SIGINT', () => stop(0, 'SIGINT'));
  process.once('SIGTERM', () => stop(0, 'SIGTERM'));
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
      // Before the port is open: a demo key must not work for even one request.
      beforeListening,
      onFatal: (reason) => stop(1, reason),
    });
    stopAll = async () => {
      await node.stop();
      folder.release();
    };
    if (settings.metrics.port === undefined && !node.metrics_url.endsWith(`:${METRICS_PORT}/metrics`)) {
      log.warn({ metrics_url: node.metrics_url }, `port ${METRICS_PORT} is taken: metrics are served on another`);
    }
    let live_page: string | null = null;
    if (settings.env === 'development') {
      const { subject_keys } = node.engines;
      const demo = await onceBuilt(() => ensureDemoData({ ...node.services, subject_keys }));
      const credentials = await onceBuilt(() => keepDevCredentials({ ...node, log, demo }));
      const stopNode = stopAll;
      live_page = livePageAddress(node.base_url, settings, credentials.access_token);
      stopAll = async () => {
        await credentials.stop();
        await stopNode();
      };
    }
    const lines = [`lumio ready at ${node.base_url}`, ...(live_page ? [`lumio: live page at ${live_page}`] : [])];
    if (!stopping) process.stdout.write(`${lines.join('\n')}\n`);
    const { records } = node.engines;
    return { base_url: node.base_url, data_dir: settings.data_dir, ended, records, stop: () => stop(0, 'asked') };
  } catch (error) {
    await stopAll();
    throw inUse(error, settings) ?? error;
  }
}

/** Read models are built by a process with the projector's role, which may start after this one. */
const onceBuilt = <T>(work: () => Promise<T>): Promise<T> =>
  retry(work, { first_ms: 100, most_ms: 1000, within_ms: 60_000, passing: (error) => error instanceof NotBuilt });

/** A port that somebody has, in words that name the setting. */
function inUse(error: unknown, { port }: Settings): Error | undefined {
  const { code, address, port: taken } = error as { code?: string; address?: string; port?: number };
  if (code !== 'EADDRINUSE') return undefined;
  const name = taken === port ? 'LUMIO_PORT' : 'LUMIO_METRICS__PORT';
  return new Error(`${address}:${taken} is in use by another program: stop it, or set ${name} to another port`, {
    cause: error,
  });
}
