/** The one table of error codes and the HTTP status each is answered with. Source: spec doc1 §7.1. */
export const ERROR_STATUS = {
  BAD_REQUEST: 400,
  VALIDATION_ERROR: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  PLAN_LIMIT_REACHED: 403,
  FEATURE_DISABLED: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
  RATE_LIMIT_EXCEEDED: 429,
  DATABASE_ERROR: 500,
  REDIS_ERROR: 500,
  INTERNAL_SERVER_ERROR: 500,
} as const;
export type ErrorCode = keyof typeof ERROR_STATUS;

export interface ApiErrorOptions {
  /** Facts for the client besides the message; sent as `details`. */
  details?: Record<string, unknown>;
  /** Overrides the code's own status (413 and 503 are answered with a table code but their own status). */
  status?: number;
  /** Seconds; sent as the `Retry-After` header. */
  retry_after_seconds?: number;
  /** Sent on REST instead of the flat body, where the documents fix another (spec doc1 §7.1 rule 4). */
  rest_body?: Record<string, unknown>;
  /** Sent as GraphQL's `extensions.code` instead of the table's (spec doc1 §7.1 rules 4 and 5). */
  graphql_code?: string;
  cause?: unknown;
}

/**
 * An answer that the caller is meant to read: `message` is user-facing and sent verbatim (4xx), replaced by a generic
 * text for 5xx.
 */
export class ApiError extends Error {
  readonly status: number;
  readonly details: Record<string, unknown> | undefined;
  readonly retry_after_seconds: number | undefined;
  readonly rest_body: Record<string, unknown> | undefined;
  readonly graphql_code: string | undefined;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: ApiErrorOptions = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'ApiError';
    this.status = options.status ?? ERROR_STATUS[code];
    this.details = options.details;
    this.retry_after_seconds = options.retry_after_seconds;
    this.rest_body = options.rest_body;
    this.graphql_code = options.graphql_code;
  }
}

/**
 * Refusal by a rule, with its reason. The operation declares the answer to its callers (`kernel/operations/errors.ts`);
 * an undeclared reason is a defect and answered as one.
 */
export class DomainError extends Error {
  constructor(
    readonly reason: string,
    readonly details: Record<string, unknown> = {},
  ) {
    super(reason);
    this.name = 'DomainError';
  }
}

const RETRY_AFTER_SECONDS = 5;

/**
 * A read model is being built, or stands still where it must not: what it would answer is not the whole. 503 with
 * `Retry-After`.
 */
export class NotBuilt extends ApiError {
  constructor(projection: string, why = 'is being built') {
    super('INTERNAL_SERVER_ERROR', `the read model ${projection} ${why}`, {
      status: 503,
      retry_after_seconds: RETRY_AFTER_SECONDS,
    });
    this.name = 'NotBuilt';
  }
}
