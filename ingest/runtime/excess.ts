import { isTooLarge, MAX_STORED_BYTES } from './text';
import type { DraftRecord } from './webhook';

/**
 * Most persons whom a record names: each costs a key and 60 bytes of its header, which shares the topics' 2 MiB with
 * the record. The longest list that a vendor sends is of giftees, some hundreds.
 */
export const MOST_PERSONS = 5_000;

/** Why records cannot be stored, for their size or the number of persons in them; null when they can. */
export function excessOf(
  records: readonly Pick<DraftRecord, 'raw' | 'subjects'>[],
): { reason: string; detail: string } | null {
  if (records.some(({ raw }) => isTooLarge(raw))) {
    return { reason: 'too_large', detail: `more than ${MAX_STORED_BYTES} bytes` };
  }
  const crowded = records.some(({ subjects = [] }) => subjects.length >= MOST_PERSONS);
  return crowded ? { reason: 'too_many_persons', detail: `more than ${MOST_PERSONS} persons` } : null;
}

/** Whom records are about that cannot be stored: the first one that is named. */
export const aboutWhom = (records: readonly Pick<DraftRecord, 'subject'>[]): string | null =>
  records.find(({ subject }) => subject !== null)?.subject ?? null;
