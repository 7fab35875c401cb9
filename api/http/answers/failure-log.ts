import { createBurstLog } from '../../../kernel/burst-log';
import type { Logger } from '../../../engines/log/port';
import type { Failure } from './errors';

/** Name of the GraphQL route in counts of failures. */
export const GRAPHQL = 'POST /v1/gql';

/** Logs the cause of an answer with a generic text. */
export type LogFailure = (failure: Failure, request: { route: string; facts: object }, message: string) => void;

/**
 * Logs each lasting failure as a line. Passing failures, whose answers have a Retry-After, occur by the thousand while
 * an engine is unavailable, so that those of one code are counted together in a few lines.
 */
export function createFailureLog(log: Logger): LogFailure {
  const outages = new Map<string, ReturnType<typeof createBurstLog>>();
  return (failure, { route, facts }, message) => {
    if (!failure.hidden) return;
    if (failure.retry_after_seconds === undefined) return log.error(facts, message);
    const { code } = failure;
    const outage = outages.get(code) ?? createBurstLog(log, 'warn', 'requests were answered to come again');
    outages.set(code, outage);
    outage({ kind: route, facts: { code, ...facts } });
  };
}
