import { createBurstLog } from '../../../kernel/burst-log';
import { ApiError } from '../../../kernel/errors';
import { EngineUnavailable, engineOf, failureKind } from '../../../kernel/failures';
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

/** Causes with lines of their own; all others are one. */
const MOST_CAUSES = 32;

/**
 * Logs a failure that a request has for its own reason as a line. Failures for a cause that requests share occur by the
 * thousand while an engine is unavailable, so that those of one cause are counted together in a few lines.
 */
export function createFailureLog(log: Logger): LogFailure {
  const outages = new Map<string, ReturnType<typeof createBurstLog>>();
  return (error, failure, { route, facts }, message) => {
    if (!failure.hidden) return;
    const { code, retry_after_seconds } = failure;
    const passing = retry_after_seconds !== undefined;
    const named = sharedCause(error, passing);
    if (named === null) return log[passing ? 'warn' : 'error'](facts, message);
    const cause = outages.has(named) || outages.size < MOST_CAUSES ? named : 'other';
    const outage = outages.get(cause) ?? createBurstLog(log, 'warn', 'requests fail for a cause that they share');
    outages.set(cause, outage);
    outage({ kind: route, facts: { cause, code, ...facts } });
  };
}

/** The engine that requests lack, or another cause that they share; null where a request failed for its own reason. */
function sharedCause(error: unknown, passing: boolean): string | null {
  const origin = error instanceof ApiError ? (error.cause ?? error) : error;
  const kind = failureKind(origin);
  // It lost against another request.
  if (kind === 'conflict' || kind === 'raced') return null;
  const engine = origin instanceof EngineUnavailable ? origin.engine : engineOf(origin);
  if (engine === 'redis' || (engine && (kind === 'away' || kind === 'refused'))) return engine;
  if (!passing) return null;
  if (origin instanceof ApiError) return origin.message;
  return origin instanceof Error ? origin.name : 'other';
}
