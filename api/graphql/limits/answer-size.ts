import type { ExecutionResult } from 'graphql';
import { ApiError } from '../../../kernel/errors';
import { MAX_PAGE_BYTES } from '../../../kernel/operations/pages';
import { RawJson } from '../../../lib/json/raw-json';

/** An answer with more bytes than allowed. The commands of its document have had their effect. */
export class AnswerTooLarge extends ApiError {
  constructor(max_bytes: number) {
    super('BAD_REQUEST', `The answer is larger than ${max_bytes} bytes: ask for fewer rows or fields`);
  }
}

/**
 * Refuses a result whose text would be too large, before that text is made, because aliases repeat values that are in
 * memory once. Counts at most the text's real size, so that a result within the limit is never refused.
 * @throws AnswerTooLarge
 */
export function holdResult(result: ExecutionResult, max_bytes: number): ExecutionResult {
  let left = max_bytes;
  const take = (bytes: number) => {
    left -= bytes;
    if (left < 0) throw new AnswerTooLarge(max_bytes);
  };
  const count = (value: unknown): void => {
    if (typeof value === 'string') return take(value.length + 2);
    if (typeof value !== 'object' || value === null) return take(1);
    if (value instanceof RawJson) return take(value.text.length);
    take(2);
    if (Array.isArray(value)) return value.forEach(count);
    for (const name in value) {
      const member = (value as Record<string, unknown>)[name];
      if (member === undefined) continue;
      take(name.length + 3);
      count(member);
    }
  };
  count(result.data);
  return result;
}

/** @throws AnswerTooLarge */
export function holdText(text: string, max_bytes: number): string {
  // A character has at most three bytes.
  if (text.length * 3 > max_bytes && Buffer.byteLength(text) > max_bytes) throw new AnswerTooLarge(max_bytes);
  return text;
}

/** Share of an answer that rows of pages may have; their other members take the rest. */
const SHARE_OF_PAGES = 0.75;

/** Bytes of each page of an answer that has several. */
export const pageBytes = (root_fields: number, max_bytes: number): number =>
  Math.min(MAX_PAGE_BYTES, Math.floor((max_bytes * SHARE_OF_PAGES) / Math.max(1, root_fields)));
