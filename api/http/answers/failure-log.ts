import { createOutageLog } from '../../../kernel/outage-log';
import type { Logger } from '../../../engines/log/port';
import type { Failure } from './errors';

/** Name of the GraphQL route in counts of failures. */
export const GRAPHQL = 'POST /v1/gql';

/** Logs the cause of an answer with a generic text. */
export type LogFailure = (
  error: unknown,
  failure: Failure,
  request: { route: string; facts: object },
  message: string,
) => void;

/**
 * Logs a failure that a request has for its own reason as a line. Failures for a cause that requests share occur by the
 * thousand while an engine is unavailable, so that those of one cause are counted together in a few lines.
 */
export function createFailureLog(log: Logger): LogFailure {
  const shared = createOutageLog(log, 'requests fail for a cause that they share');
  return (error, failure, { route, facts }, message) => {
    if (!failure.hidden) return;
    const { code, retry_after_seconds } = failure;
    const passing = retry_after_seconds !== undefined;
    if (shared(error, passing, { kind: route, facts: { code, ...facts } })) return;
    log[passing ? 'warn' : 'error'](facts, message);
  };
}
