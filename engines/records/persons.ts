import type { RecordEnvelope } from '../../domain/records';
import type { SubjectKey } from '../subject-keys/port';

/**
 * Beside the envelope, not in it, as the schema stays what it was: of a record that names others than its subject, all
 * its persons in the order in which their keys are combined, each as `<hash>:<key id>`.
 */
export const PERSONS_HEADER = 'lumio-persons';

/** A person of a record, as the header names them. */
export type Named = Pick<SubjectKey, 'hash' | 'key_id'>;

/** Everybody whose erasure makes a record unreadable, the one it is about first; each once. */
export const personsOf = ({ subject, subjects = [] }: Pick<RecordEnvelope, 'subject' | 'subjects'>): string[] =>
  subjects.length === 0 ? (subject ? [subject] : []) : [...new Set(subject ? [subject, ...subjects] : subjects)];

/** Whether the keys are combined: one person whom the record is about has it alone. */
export const namesOthers = ({ subjects = [] }: Pick<RecordEnvelope, 'subjects'>): boolean => subjects.length > 0;

export const personsHeader = (persons: readonly Named[]): string =>
  persons.map(({ hash, key_id }) => `${hash}:${key_id}`).join(' ');

/** Null where there is no such header. */
export function personsIn(headers: Readonly<Record<string, string>>): Named[] | null {
  const text = headers[PERSONS_HEADER];
  if (text === undefined) return null;
  return text.split(' ').map((one) => {
    const [hash = '', key_id = ''] = one.split(':');
    return { hash, key_id };
  });
}
