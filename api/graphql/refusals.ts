import { ApiError } from '../../kernel/errors';
import type { SourceLocation } from './limits/locations';

/** Reason of a refused document, as shown to the caller. */
export interface Reason {
  readonly message: string;
  readonly locations: readonly SourceLocation[] | undefined;
}

/** Refusal of a document in the form that is cached, without the stack of an error. */
export interface Refusal {
  readonly code: 'BAD_REQUEST' | 'VALIDATION_ERROR';
  /** At least one. */
  readonly reasons: readonly Reason[];
}

/** Longest message, because errors quote the document, where a name may have a megabyte. */
const LONGEST_MESSAGE = 500;

/** @param locations places in the document, when known */
export function reason(message: string, locations?: readonly SourceLocation[]): Reason {
  return { message: message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message, locations };
}

/** Error of a refused document; the answer has every reason. */
export class RefusedDocument extends ApiError {
  readonly reasons: readonly Reason[];

  constructor(refusal: Refusal) {
    super(refusal.code, refusal.reasons[0]!.message);
    this.reasons = refusal.reasons;
  }
}
