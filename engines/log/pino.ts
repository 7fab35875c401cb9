import pino, { type Logger as Pino } from 'pino';
import type { Logger } from './port';

/** JSON lines on standard output. `correlation_id` and `trace` come with the facts of each line. */
export function createLog(level: string, base: object = {}): { log: Logger; pino: Pino } {
  const root = pino({
    level,
    base,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { error: pino.stdSerializers.err },
    redact: ['authorization', 'token', 'secret', 'req.headers.authorization', 'req.headers.cookie'],
  });
  return { log: wrap(root), pino: root };
}

function wrap(logger: Pino): Logger {
  return {
    debug: (facts, message) => logger.debug(facts, message),
    info: (facts, message) => logger.info(facts, message),
    warn: (facts, message) => logger.warn(facts, message),
    error: (facts, message) => logger.error(facts, message),
    child: (facts) => wrap(logger.child(facts)),
  };
}
