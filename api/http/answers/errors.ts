import { ApiError, ERROR_STATUS, type ErrorCode } from '../../../kernel/errors';
import { UnreadableEvent } from '../../../kernel/upcasters';
import { RevisionConflict } from '../../../engines/event-store/port';
import { EngineUnavailable, engineOf, isPassing } from '../../../kernel/failures';

/** Texts that replace the details of every 5xx. Source: spec doc1 §7.1 rule 2. */
export const GENERIC_MESSAGES = {
  DATABASE_ERROR: 'An internal database error occurred',
  REDIS_ERROR: 'An internal cache error occurred',
  INTERNAL_SERVER_ERROR: 'An internal server error occurred',
} as const;
type GenericCode = keyof typeof GENERIC_MESSAGES;

/** Failure of a request, from which each protocol derives its answer. */
export interface Failure {
  code: ErrorCode;
  message: string;
  status: number;
  details: Record<string, unknown> | undefined;
  retry_after_seconds: number | undefined;
  /** True when the caller gets a generic text: the cause belongs in the log. */
  hidden: boolean;
  /** Replaces the flat body. */
  rest_body?: Record<string, unknown>;
  /** Replaces `code` on GraphQL. */
  graphql_code?: string;
}

/** Seconds after which a caller may retry when an engine was too slow or unavailable. */
const RETRY_AFTER = 5;
/**
 * Seconds after which a caller may retry a command that lost every race for its stream: the others are done by then.
 */
const RETRY_AFTER_RACE = 1;

/** Longest message, because a text that quotes a caller's input may have a megabyte. */
const MAX_MESSAGE = 3000;
const shortened = (text: string): string => (text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text);

/**
 * Converts any thrown value into the failure from which REST and GraphQL derive their answers. Never throws. Source:
 * spec doc1 §7.1.
 */
export function toFailure(error: unknown): Failure {
  if (error instanceof ApiError) {
    const hidden = error.status >= 500 && error.code in GENERIC_MESSAGES;
    return {
      code: error.code,
      message: hidden ? GENERIC_MESSAGES[error.code as GenericCode] : shortened(error.message),
      status: error.status,
      details: hidden ? undefined : error.details,
      retry_after_seconds: error.retry_after_seconds,
      hidden,
      rest_body: error.rest_body,
      graphql_code: error.graphql_code,
    };
  }
  const code = codeOf(error);
  const retry_after_seconds = retryAfter(code, error);
  return (
    fromTransport(error) ?? {
      ...plain(code, GENERIC_MESSAGES[code]),
      hidden: true,
      ...(retry_after_seconds !== undefined && { status: 503, retry_after_seconds }),
    }
  );
}

/**
 * Seconds after which the same request may succeed; undefined when it will not. An event of a newer release counts as
 * passing: a node of that release may take the next request, or this node after its update.
 */
function retryAfter(code: GenericCode, error: unknown): number | undefined {
  if (error instanceof RevisionConflict) return RETRY_AFTER_RACE;
  const passing =
    error instanceof UnreadableEvent ||
    error instanceof EngineUnavailable ||
    (code === 'DATABASE_ERROR' && isPassing(error));
  return passing ? RETRY_AFTER : undefined;
}

/** Converts a failure of Fastify's own request reading; null for any other error. */
function fromTransport(error: unknown): Failure | null {
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  if (typeof code !== 'string' || typeof statusCode !== 'number' || statusCode < 400 || statusCode > 499) return null;
  const message =
    statusCode === 413
      ? 'The request body is too large'
      : statusCode === 415
        ? 'Unsupported content type: send application/json'
        : code === 'FST_ERR_BAD_URL'
          ? 'The URL is malformed'
          : 'The request is malformed';
  return { ...plain('BAD_REQUEST', message), status: statusCode };
}

function plain(code: ErrorCode, message: string): Failure {
  return {
    code,
    message,
    status: ERROR_STATUS[code],
    details: undefined,
    retry_after_seconds: undefined,
    hidden: false,
  };
}

const CODES = { database: 'DATABASE_ERROR', redis: 'REDIS_ERROR', none: 'INTERNAL_SERVER_ERROR' } as const;
const codeOf = (error: unknown): GenericCode => CODES[engineOf(error) ?? 'none'];

/** The flat body of REST; without details it has no `details`. */
export function restBody(failure: Failure): Record<string, unknown> {
  if (failure.rest_body) return failure.rest_body;
  return failure.details === undefined
    ? { error: failure.code, message: failure.message }
    : { error: failure.code, message: failure.message, details: failure.details };
}
