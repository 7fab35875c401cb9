import { ApiError } from '../../kernel/errors';
import type { Place } from './places';

/** One reason why a document was refused, as it is shown. */
export interface Reason {
  readonly message: string;
  readonly locations: readonly Place[] | undefined;
}

/** Why a document was refused, without the stack that an error carries: this is kept. */
export interface Refusal {
  readonly code: 'BAD_REQUEST' | 'VALIDATION_ERROR';
  /** At least one. */
  readonly reasons: readonly Reason[];
}

/** Errors quote what they complain about, and a caller can write a name of a megabyte. */
const LONGEST_MESSAGE = 500;

/** @param locations where in the document, if it is about one place */
export function reason(message: string, locations?: readonly Place[]): Reason {
  return { message: message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message, locations };
}

/** A document that is not run; answered with every reason. */
export class RefusedDocument extends ApiError {
  readonly reasons: readonly Reason[];

  constructor(refusal: Refusal) {
    super(refusal.code, refusal.reasons[0]!.message);
    this.reasons = refusal.reasons;
  }
}
