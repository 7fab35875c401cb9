import { ApiError, DomainError, type ApiErrorOptions, type ErrorCode } from './errors';

/** One way in which an operation says no: what its callers are told. `{name}` in the text is filled from the facts. */
export interface OperationError<Text extends string = string> {
  readonly code: ErrorCode;
  readonly text: Text;
  /**
   * Facts that are sent as `details`; all others stay inside, since a rule of the domain may name what is not the
   * caller's.
   */
  readonly shows?: readonly string[];
  readonly retry_after_seconds?: number;
  /** Overrides the code's own HTTP status. */
  readonly status?: number;
  /** Sent on REST instead of the flat body, where the documents fix another. Source: spec doc1 §7.1 rule 4. */
  readonly rest_body?: Record<string, unknown>;
  /** Sent as GraphQL's `extensions.code`. Source: spec doc1 §7.1 rules 4 and 5. */
  readonly graphql_code?: string;
}

/** What an operation may answer beside its output, by the reason that is thrown. */
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
 * What the caller is told of something that was thrown: a declared reason, whether `run` or `decide` threw it, is
 * answered as it was declared; everything else is passed on.
 */
export function declaredAnswer(errors: OperationErrors, thrown: unknown): unknown {
  if (!(thrown instanceof DomainError) || !Object.hasOwn(errors, thrown.reason)) return thrown;
  const { code, text, shows = [], status, retry_after_seconds, rest_body, graphql_code } = errors[thrown.reason]!;
  const facts = thrown.details;
  const options: ApiErrorOptions = {
    cause: thrown,
    ...(shows.length > 0 && {
      details: Object.fromEntries(shows.flatMap((name) => (name in facts ? [[name, facts[name]]] : []))),
    }),
    ...(status !== undefined && { status }),
    ...(retry_after_seconds !== undefined && { retry_after_seconds }),
    ...(rest_body && { rest_body }),
    ...(graphql_code !== undefined && { graphql_code }),
  };
  const message = text.replaceAll(/\{(\w+)\}/g, (_all, name: string) => String(facts[name]));
  return new ApiError(code, message, options);
}
