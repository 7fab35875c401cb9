import type { Logger } from '../../engines/log/port';
import type { Stops } from '../../kernel/stops';

/**
 * Longest time after the loss of an engine: what waits for it waits in vain, and the process that is started next can
 * serve.
 */
const END_WITHIN_MS = 2_000;

export interface ProcessEnd {
  /** Resolves with the exit code when everything has stopped, or when that took too long. */
  readonly ended: Promise<number>;
  readonly stopping: boolean;
  /** Stops everything once: code 0 where that was asked for, another one where something was lost. */
  stop(code: number, reason: string): void;
}

/** How a process that serves ends: by SIGINT, SIGTERM or `stop`, and within `stop_within_ms` whatever hangs. */
export function processEnd(log: Logger, stops: Stops, stop_within_ms: number): ProcessEnd {
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
    stops
      .all()
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
  return {
    ended,
    stop,
    get stopping() {
      return stopping;
    },
  };
}
