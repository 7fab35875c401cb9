import type { Logger } from '../../engines/log/port';
import type { ShutdownStack } from '../../lib/async/shutdown-stack';

/**
 * Longest shutdown after the loss of an engine: work that waits for it cannot finish, and a restarted process can
 * serve.
 */
const END_WITHIN_MS = 2_000;

export interface ProcessEnd {
  /** Resolves with the exit code when everything has stopped, or after the time limit. */
  readonly ended: Promise<number>;
  readonly stopping: boolean;
  /** Stops everything once: code 0 on request, another code after a loss. */
  stop(code: number, reason: string): void;
}

/** Ends a serving process on SIGINT, SIGTERM or `stop`, within `stop_within_ms` even when something hangs. */
export function processEnd(log: Logger, stops: ShutdownStack, stop_within_ms: number): ProcessEnd {
  let end: (code: number) => void = () => undefined;
  const ended = new Promise<number>((resolve) => (end = resolve));
  let stopping = false;
  const stop = (code: number, reason: string) => {
    if (stopping) return;
    stopping = true;
    const lost = code !== 0;
    log[lost ? 'error' : 'info']({ reason }, 'stopping');
    const after_ms = lost ? END_WITHIN_MS : stop_within_ms;
    const late = setTimeout(() => {
      log[lost ? 'warn' : 'error']({ after_ms }, 'stopping took too long; ending now');
      end(1);
    }, after_ms);
    const began = performance.now();
    stops
      .all()
      .then(
        () => {
          log.info({ ms: Math.round(performance.now() - began) }, 'stopped');
          end(code);
        },
        (error: unknown) => {
          log.error({ error }, 'stopping failed');
          end(1);
        },
      )
      .finally(() => clearTimeout(late));
  };
  process.once('SIGINT', () => stop(0, 'SIGINT'));
  process.once('SIGTERM', () => stop(0, 'SIGTERM'));
  return {
    ended,
    stop,
    get stopping() {
      return stopping;
    },
  };
}
