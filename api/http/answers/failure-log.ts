import { createBurstLog } from '../../../kernel/burst-log';
import type { Logger } from '../../../engines/log/port';
import type { Failure } from './errors';

/** Name of the GraphQL route in counts of failures. */
export const GRAPHQL = 'POST /v1/gql';

/** Logs the cause of an answer with a generic text. */
export type LogFailure = (failure: Failure, request: { route: string; facts: object }, message: string) => void;

/**
 * Logs each lasting failure as a line. Passing failures, whose answers have a Retry-After, occur by the thousand while
 * an engine is unavailable, so that they are counted in one line a second.
 */
export function createFailureLog(log: Logger): LogFailure {
  const unavailable = createBurstLog(log, 'warn', 'requests were answered to come again');
  return (failure, { route, facts }, message) => {
    if (!failure.hidden) return;
    if (failure.retry_after_seconds === undefined) log.error(facts, message);
    else unavailable({ kind: route, facts });
  };
}
