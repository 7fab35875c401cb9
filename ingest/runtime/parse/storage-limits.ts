import { isTooLarge, MAX_STORED_BYTES } from './text';
import type { DraftRecord } from '../webhook/webhook';

/**
 * Maximum persons in a record: each costs a key and 60 bytes of its header, which shares the topics' 2 MiB with the
 * record. The longest list of a vendor is of giftees, some hundreds.
 */
export const MAX_PERSONS = 5_000;

/** Reason why records cannot be stored, for their size or the number of persons in them; null when they can. */
export function storageLimitViolation(
  records: readonly Pick<DraftRecord, 'raw' | 'subjects'>[],
): { reason: string; detail: string } | null {
  if (records.some(({ raw }) => isTooLarge(raw))) {
    return { reason: 'too_large', detail: `more than ${MAX_STORED_BYTES} bytes` };
  }
  const crowded = records.some(({ subjects = [] }) => subjects.length >= MAX_PERSONS);
  return crowded ? { reason: 'too_many_persons', detail: `more than ${MAX_PERSONS} persons` } : null;
}

/** Subject of records that cannot be stored: the first in the list. */
export const firstSubject = (records: readonly Pick<DraftRecord, 'subject'>[]): string | null =>
  records.find(({ subject }) => subject !== null)?.subject ?? null;
