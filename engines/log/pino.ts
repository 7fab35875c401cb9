import pino, { type Logger as Pino } from 'pino';
import type { Logger } from './port';
import { readableLine } from './readable';
import { loggedError, redact } from './redaction';

/** Names of facts that must not be logged; their values are cut out. */
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

export interface LogOptions {
  /** Commands log to standard error, because their output is the result. Default: standard output. */
  to?: 'stdout' | 'stderr';
  /** Short lines for a person at a terminal. Default: JSON lines. */
  readable?: boolean;
}

/** Creates the log of a process. `correlation_id` and `trace` are among the facts of each line. */
export function createLog(
  level: string,
  { to = 'stdout', readable = false }: LogOptions = {},
): {
  log: Logger;
  pino: Pino;
} {
  const options = {
    level,
    base: {},
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: loggedError, err: loggedError },
    redact: { paths: SECRET_FACTS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
    hooks: { streamWrite: readable ? (line: string) => readableLine(redact(line)) : redact },
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
