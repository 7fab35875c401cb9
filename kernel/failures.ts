import { DataError } from './projection';
import { UnreadableEvent } from './upcasters';

/**
 * Kinds of failure:
 * - `conflict`: it lost against another one, and the same may be tried again at once;
 * - `raced`: what it was decided on has changed meanwhile: it is to be decided again;
 * - `away`: an engine is away or busy, or the next build will do it: the same may succeed later, and what was done
 *   until then is unknown;
 * - `refused`: an engine turns us away for what an operator has to mend (rights, disk, settings): no data is to blame;
 * - `data`: what was given cannot be taken, however often it is tried;
 * - `bug`: a mistake of the program.
 */
export type FailureKind = 'conflict' | 'raced' | 'away' | 'refused' | 'data' | 'bug';

const PURPOSES: Readonly<Record<string, string>> = { kafka: 'broker', kurrentdb: 'event_store' };

/**
 * An engine did not do in time what it was asked, and may do it later: it is away, busy or changing its leader. Whether
 * it was done is unknown. Adapters say so of their own engine's errors; the front door answers 503 with `Retry-After`.
 */
export class EngineUnavailable extends Error {
  /** By its purpose, as health names it. */
  readonly engine: string;

  constructor(product: string, cause: unknown) {
    super(`${product} is away: ${cause instanceof Error ? cause.message.split('\n')[0] : String(cause)}`, { cause });
    this.name = 'EngineUnavailable';
    this.engine = PURPOSES[product] ?? product;
  }
}

/** Failure kinds of PostgreSQL by SQLSTATE or its class; the first match counts. All others are defects. */
const SQL: readonly (readonly [RegExp, FailureKind])[] = [
  // Victims of serialisation and deadlock, and a lock that was not had in time.
  [/^(?:40|55P03)/, 'conflict'],
  // A connection that was lost or refused, a server that starts or stops, a cancelled statement, want of resources, a
  // server that became a standby, a transaction that was ended for its time.
  [/^(?:08|57|53|25006|25P03|25P04)/, 'away'],
  // No such number or date, a constraint, more than an index takes.
  [/^(?:22|23|54)/, 'data'],
  [/^(?:25|28|3D|55|58|F0|XX)/, 'refused'],
];
const SQLSTATE = /^(?!E)[0-9A-Z]{5}$/;

const SOCKET =
  /^(?:E(?:CONN|HOST|NET|TIME|PIPE|AI_|NOTFOUND|NOENT|ADDR|MFILE|NFILE)\w*|UND_ERR\w*|ERR_STREAM\w*|ERR_SOCKET\w*)$/;
const LINK_LOST = /^(?:ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/;
/** Messages of drivers without a code when a connection breaks or is not made in time. */
const CONNECTION =
  /connection terminated|connection error|closed the connection|timeout exceeded when trying to connect|timeout expired|query read timeout|pool after calling end|client was closed|not queryable|socket hang up/i;
const NAMES: Readonly<Record<string, FailureKind>> = {
  EngineUnavailable: 'away',
  NotBuilt: 'away',
  AbortError: 'away',
  TimeoutError: 'away',
  RevisionConflict: 'raced',
};

interface Facts {
  code?: unknown;
  message?: unknown;
  name?: unknown;
}

/** Kind of a failure: the only place that classifies errors. */
export function failureKind(error: unknown): FailureKind {
  if (error instanceof DataError) return 'data';
  // An event that only a newer release can read waits where it is.
  if (error instanceof UnreadableEvent) return error.newer ? 'away' : 'data';
  const { code, message, name } = (typeof error === 'object' && error !== null ? error : {}) as Facts;
  if (typeof code === 'string') {
    if (SQLSTATE.test(code)) return SQL.find(([states]) => states.test(code))?.[1] ?? 'bug';
    if (SOCKET.test(code)) return 'away';
  } else if (typeof message === 'string' && CONNECTION.test(message)) return 'away';
  return (typeof name === 'string' && Object.hasOwn(NAMES, name) && NAMES[name]) || 'bug';
}

/** True when the same may succeed later as it is, without anybody's help. */
export const isPassing = (error: unknown): boolean => ['conflict', 'away'].includes(failureKind(error));

/** True when it lost against another one: the same may be tried again at once. */
export const isConflict = (error: unknown): boolean => failureKind(error) === 'conflict';

const REDIS_NAMES = new Set([
  'RedisAway',
  'ReplyError',
  'MaxRetriesPerRequestError',
  'AbortError',
  'ParserError',
  'ClusterAllFailedError',
]);

/** The engine whose driver threw the error; undefined when the class is shared. */
export function engineOf(error: unknown): 'database' | 'redis' | undefined {
  if (!(error instanceof Error) || error instanceof EngineUnavailable) return undefined;
  const { code, severity, command, syscall } = error as Error & Record<string, unknown>;
  if (REDIS_NAMES.has(error.name) || command !== undefined) return 'redis';
  // A connection may fail for want of our own descriptors, too.
  if (syscall === 'connect') return 'database';
  if (typeof code !== 'string') return CONNECTION.test(error.message) ? 'database' : undefined;
  return (SQLSTATE.test(code) && severity !== undefined) || LINK_LOST.test(code) ? 'database' : undefined;
}
