import { ApiError } from '../../../kernel/errors';

const MiB = 1024 * 1024;
/** Most bytes of the JSON text of an answer; files and NDJSON are streamed. */
export const MAX_ANSWER_BYTES = 16 * MiB;

/** An answer with more bytes than allowed. Commands have had their effect. */
export class AnswerTooLarge extends ApiError {
  constructor(max_bytes = MAX_ANSWER_BYTES) {
    super('BAD_REQUEST', `The answer is larger than ${max_bytes / MiB} MiB; ask for fewer items`);
  }
}

/** @throws AnswerTooLarge */
export function holdText(text: string, max_bytes = MAX_ANSWER_BYTES): string {
  // A character has at most three bytes.
  if (text.length * 3 > max_bytes && Buffer.byteLength(text) > max_bytes) throw new AnswerTooLarge(max_bytes);
  return text;
}
