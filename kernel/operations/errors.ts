import { ApiError, DomainError, type ApiErrorOptions, type ErrorCode } from '../errors';

/** Declared refusal of an operation: its answer to callers. `{name}` in the text is filled from the facts. */
export interface OperationError<Text extends string = string> {
  readonly code: ErrorCode;
  readonly text: Text;
  /**
   * Facts that are sent as `details`; all others stay inside, since a rule of the domain may name what is not the
   * caller's.
   */
  readonly shows?: readonly string[];
  /** Default: the fact of this name, where it is one. */
  readonly retry_after_seconds?: number;
  /** Overrides the code's own HTTP status. */
  readonly status?: number;
  /** Sent on REST instead of the flat body, where the documents fix another. Source: spec doc1 §7.1 rule 4. */
  readonly rest_body?: Record<string, unknown>;
  /** Sent on REST as `error` instead of the code, next to `message` and `retry_after_seconds`. */
  readonly rest_code?: string;
  /** Sent as GraphQL's `extensions.code`. Source: spec doc1 §7.1 rules 4 and 5. */
  readonly graphql_code?: string;
}

/** Answers of an operation besides its output, by the thrown reason. */
export type OperationErrors = Readonly<Record<string, OperationError>>;

type Options = Omit<OperationError, 'code' | 'text'>;
const as =
  (code: ErrorCode) =>
  <const Text extends string>(text: Text, options: Options = {}): OperationError<Text> => ({ code, text, ...options });

/** 400 `BAD_REQUEST` */
export const badRequest = as('BAD_REQUEST');
/** 413 `BAD_REQUEST`: more bytes than the operation takes. */
export const tooLarge = <const Text extends string>(text: Text): OperationError<Text> =>
  badRequest(text, { status: 413 });
/** 400 `VALIDATION_ERROR`: what the input's schema cannot say. */
export const invalid = as('VALIDATION_ERROR');
/** 401 */
export const unauthorized = as('UNAUTHORIZED');
/** 403 `FORBIDDEN` */
export const forbidden = as('FORBIDDEN');
/** 403 `PLAN_LIMIT_REACHED` */
export const planLimit = as('PLAN_LIMIT_REACHED');
/** 403 `FEATURE_DISABLED`, for a flag that depends on the state and so is no guard. */
export const featureDisabled = as('FEATURE_DISABLED');
/** 404 */
export const notFound = as('NOT_FOUND');
/** 409 */
export const conflict = as('CONFLICT');
/** 429 */
export const rateLimited = as('RATE_LIMIT_EXCEEDED');

type Placeholders<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholders<Rest>
  : never;
type Facts<E> =
  E extends OperationError<infer Text>
    ? [Placeholders<Text>] extends [never]
      ? [facts?: Record<string, unknown>]
      : [facts: Record<Placeholders<Text>, unknown> & Record<string, unknown>]
    : never;

/** Makes what an operation throws to answer one of its declared errors: `throw refuse('KEY_NOT_FOUND')`. */
export type Refuse<Errors extends OperationErrors> = <Reason extends keyof Errors & string>(
  reason: Reason,
  ...facts: Facts<Errors[Reason]>
) => DomainError;

export const refuse = (reason: string, facts: Record<string, unknown> = {}): DomainError =>
  new DomainError(reason, facts);

/**
 * Answer to the caller for a thrown value: a declared reason, from `run` or `decide`, becomes its declared answer; any
 * other value is returned as it is.
 */
export function declaredAnswer(errors: OperationErrors, thrown: unknown): unknown {
  if (!(thrown instanceof DomainError) || !Object.hasOwn(errors, thrown.reason)) return thrown;
  const { code, text, shows = [], status, rest_body, rest_code, graphql_code, ...declared } = errors[thrown.reason]!;
  const facts = thrown.details;
  const message = text.replaceAll(/\{(\w+)\}/g, (_all, name: string) => String(facts[name]));
  const retry_after_seconds = declared.retry_after_seconds ?? (facts['retry_after_seconds'] as number | undefined);
  const details = Object.fromEntries(shows.flatMap((name) => (name in facts ? [[name, facts[name]]] : [])));
  const body =
    rest_code === undefined
      ? rest_body
      : { error: rest_code, message, retry_after_seconds, ...(shows.length > 0 && { details }) };
  const options: ApiErrorOptions = {
    cause: thrown,
    ...(shows.length > 0 && { details }),
    ...(status !== undefined && { status }),
    ...(retry_after_seconds !== undefined && { retry_after_seconds }),
    ...(body && { rest_body: body }),
    ...(graphql_code !== undefined && { graphql_code }),
  };
  return new ApiError(code, message, options);
}
