import pino, { type Logger as Pino } from 'pino';
import type { Logger } from './port';
import { loggedError, redact } from './redaction';

/** Names under which nobody should pass anything; what is passed all the same is cut out. */
const SECRET_FACTS = [
  'authorization',
  'cookie',
  'token',
  'secret',
  'password',
  'key',
  'raw',
  'raw_body',
  'body',
  'payload',
];

/**
 * JSON lines: of a server on standard output, of a command on standard error, since its output is its result.
 * `correlation_id` and `trace` come with the facts of each line.
 */
export function createLog(level: string, to: 'stdout' | 'stderr' = 'stdout'): { log: Logger; pino: Pino } {
  const options = {
    level,
    base: {},
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: loggedError, err: loggedError },
    redact: { paths: SECRET_FACTS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
    hooks: { streamWrite: redact },
  };
  const root = pino(options, pino.destination(process[to].fd));
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
