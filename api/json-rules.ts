import { ApiError } from '../kernel/errors';

/** Deepest nesting of arrays and objects in a body, and in an argument of a GraphQL document. */
export const MAX_JSON_DEPTH = 64;

/**
 * What no JSON value of a caller may be, whether it came in a body or was written into a GraphQL document: one text for
 * each.
 */
export const jsonRefusals = {
  depth: () => new ApiError('BAD_REQUEST', `The request body is nested deeper than ${MAX_JSON_DEPTH} levels`),
  nul: () => new ApiError('VALIDATION_ERROR', 'NUL characters are not allowed'),
  lone_surrogate: () => new ApiError('VALIDATION_ERROR', 'Lone surrogates are not allowed in texts'),
  member_name: (name: string) => new ApiError('VALIDATION_ERROR', `The member name ${name} is not allowed`),
  number: () => new ApiError('VALIDATION_ERROR', 'A number is too large to be kept exactly: send it as a text'),
} as const;

/** Names that change an object's prototype instead of becoming a member of it. */
export const isReservedMember = (name: string): boolean => name === '__proto__' || name === 'constructor';

/**
 * Whether a double keeps the number that `text` spells in JSON; `whole` says that it has neither fraction nor exponent.
 */
export function isKeptExactly(text: string, whole: boolean): boolean {
  return whole ? Number.isSafeInteger(Number(text)) : Number.isFinite(Number(text));
}
