import type { ExecutionResult } from 'graphql';
import { MAX_PAGE_BYTES } from '../../../kernel/operations/pages';
import { RawJson } from '../../../lib/json/raw-json';
import { AnswerTooLarge } from '../../http/answers/answer-size';

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

/** Share of an answer that rows of pages may have; their other members take the rest. */
const SHARE_OF_PAGES = 0.75;

/** Bytes of each page of an answer that has several. */
export const pageBytes = (root_fields: number, max_bytes: number): number =>
  Math.min(MAX_PAGE_BYTES, Math.floor((max_bytes * SHARE_OF_PAGES) / Math.max(1, root_fields)));
