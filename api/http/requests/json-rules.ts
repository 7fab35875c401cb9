import { ApiError } from '../../../kernel/errors';

/** Deepest nesting of arrays and objects in a body, and in an argument of a GraphQL document. */
export const MAX_JSON_DEPTH = 64;
/**
 * Most members of objects and elements of arrays of a body together, because they cost far more than their bytes:
 * without a credential, and with one.
 */
export interface MemberLimits {
  anonymous: number;
  proven: number;
}
export const MEMBER_LIMITS: MemberLimits = { anonymous: 1_000, proven: 10_000 };

/**
 * Refusals of JSON values, with one text each for bodies and for literals in GraphQL documents.
 */
export const jsonRefusals = {
  depth: () => new ApiError('BAD_REQUEST', `The request body is nested deeper than ${MAX_JSON_DEPTH} levels`),
  members: (most: number) => new ApiError('VALIDATION_ERROR', `The request body has more than ${most} members`),
  nul: () => new ApiError('VALIDATION_ERROR', 'NUL characters are not allowed'),
  lone_surrogate: () => new ApiError('VALIDATION_ERROR', 'Lone surrogates are not allowed in texts'),
  member_name: (name: string) => new ApiError('VALIDATION_ERROR', `The member name ${name} is not allowed`),
  number: () => new ApiError('VALIDATION_ERROR', 'A number is too large to be kept exactly: send it as a text'),
} as const;

/** Refusal of a member that a request has twice, because it is ambiguous. */
export const givenTwice = (name: string): ApiError => new ApiError('VALIDATION_ERROR', `${name}: is given twice`);

/** Names that change an object's prototype instead of becoming a member of it. */
export const isReservedMember = (name: string): boolean => name === '__proto__' || name === 'constructor';

/**
 * Whether a double keeps the JSON number `text` exactly; `whole` is true without fraction and exponent.
 */
export function isKeptExactly(text: string, whole: boolean): boolean {
  return whole ? Number.isSafeInteger(Number(text)) : Number.isFinite(Number(text));
}
