import type { Logger } from '../engines/log/port';
import { createBurstLog, type Occurrence } from './burst-log';
import { ApiError } from './errors';
import { EngineUnavailable, engineOf, failureKind } from './failures';

/** Causes with lines of their own; all others are one. */
const MOST_CAUSES = 32;

/**
 * Counts failures for a cause that many share, such as an engine that is unavailable, in a few lines for each cause.
 * Returns false for a failure of one request alone, which is the caller's to log.
 * @param passing true where the same may succeed later
 */
export type OutageLog = (error: unknown, passing: boolean, occurrence: Occurrence) => boolean;

export function createOutageLog(log: Logger, message: string): OutageLog {
  const outages = new Map<string, ReturnType<typeof createBurstLog>>();
  return (error, passing, { kind, facts }) => {
    const named = sharedCause(error, passing);
    if (named === null) return false;
    const cause = outages.has(named) || outages.size < MOST_CAUSES ? named : 'other';
    const outage = outages.get(cause) ?? createBurstLog(log, 'warn', message);
    outages.set(cause, outage);
    outage({ kind, facts: { cause, ...facts } });
    return true;
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
