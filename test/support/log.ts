import type { Logger } from '../../engines/log/port';

/** A log that says nothing. */
export const silentLog: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

/** A log that keeps its lines, for tests that look at them. */
export function keptLog(): Logger & { lines: { level: string; facts: object; message: string }[] } {
  const lines: { level: string; facts: object; message: string }[] = [];
  const at = (level: string) => (facts: object, message: string) => void lines.push({ level, facts, message });
  const log = { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log };
  return log;
}
