import { unwrapResolverError } from '@apollo/server/errors';
import { GraphQLError, type ExecutionResult, type GraphQLFormattedError } from 'graphql';
import { ApiError } from '../../kernel/errors';
import { stringify } from '../../lib/json/raw-json';
import { toFailure, type Failure } from '../http/answers/errors';
import { GRAPHQL, type LogFailure } from '../http/answers/failure-log';
import { logFactsOf, noteFailureOf } from '../http/requests/request-state';
import { locationsOf } from './limits/locations';
import { RefusedDocument } from './refusals';

export interface Answers {
  /** An error as shown to the caller; hidden details are logged. */
  formatError(formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError;
  /** The body of an answer to a document that ran. */
  textOf(result: ExecutionResult): string;
}

export function createAnswers(logFailure: LogFailure): Answers {
  function formatError(formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError {
    const cause = unwrapResolverError(error) as (GraphQLError & { extensions?: { code?: string } }) | Error;
    const failure = cause instanceof ApiError ? toFailure(cause) : ofGraphql(formatted, cause);
    if (failure.hidden && noteFailureOf(cause)) {
      const facts = { error: cause, path: formatted.path, ...logFactsOf(cause) };
      logFailure(cause, failure, { route: GRAPHQL, facts }, 'a GraphQL field failed');
    }
    const locations = formatted.locations ?? (error instanceof GraphQLError ? locationsOf(error.nodes) : undefined);
    return {
      message: failure.message,
      ...(locations ? { locations } : {}),
      ...(formatted.path ? { path: formatted.path } : {}),
      extensions: extensionsOf(failure),
    };
  }

  return {
    formatError,
    textOf({ data, errors }) {
      const shown = errors?.map((error) => formatError(error.toJSON(), error));
      return stringify(shown && shown.length > 0 ? { errors: shown, data } : { data });
    },
  };
}

/** The body of an answer to a request that did not run: one error, or all reasons why the document was refused. */
export function refusalText(error: unknown, failure: Failure): string {
  const reasons = error instanceof RefusedDocument ? error.reasons : [{ message: failure.message }];
  const extensions = extensionsOf(failure);
  return JSON.stringify({ errors: reasons.map((reason) => ({ ...reason, extensions })) });
}

function extensionsOf(failure: Failure): Record<string, unknown> {
  return {
    code: failure.graphql_code ?? failure.code,
    ...(failure.retry_after_seconds === undefined ? {} : { retry_after_seconds: failure.retry_after_seconds }),
    ...failure.details,
  };
}

/** Codes of our table for Apollo's own codes; any other code is a failure of the server. */
function ofGraphql(formatted: GraphQLFormattedError, cause: unknown): Failure {
  const known_code = formatted.extensions?.code;
  switch (known_code) {
    case 'GRAPHQL_VALIDATION_FAILED':
    case 'BAD_USER_INPUT':
      return toFailure(new ApiError('VALIDATION_ERROR', formatted.message));
    case 'GRAPHQL_PARSE_FAILED':
    case 'BAD_REQUEST':
    case 'OPERATION_RESOLUTION_FAILURE':
      return toFailure(new ApiError('BAD_REQUEST', formatted.message));
    default: {
      // An error without path and cause was found before anything ran: the variables do not fit.
      const inner = (cause as { originalError?: unknown }).originalError;
      const before = formatted.path === undefined && (inner === undefined || inner instanceof GraphQLError);
      return toFailure(before ? new ApiError('VALIDATION_ERROR', formatted.message) : cause);
    }
  }
}
