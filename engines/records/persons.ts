import type { RecordEnvelope } from '../../domain/common/records';
import type { SubjectKey } from '../../privacy/subject-keys/port';

/**
 * Header with all persons of a record that names others than its subject, in the order in which their keys are
 * combined, each as `<hash>:<key id>`. A header, so that the schema of the envelope stays unchanged.
 */
export const PERSONS_HEADER = 'lumio-persons';

/** A person of a record in the header. */
export type Named = Pick<SubjectKey, 'hash' | 'key_id'>;

/** The persons whose erasure makes a record unreadable, the subject first; each once. */
export const personsOf = ({ subject, subjects = [] }: Pick<RecordEnvelope, 'subject' | 'subjects'>): string[] =>
  subjects.length === 0 ? (subject ? [subject] : []) : [...new Set(subject ? [subject, ...subjects] : subjects)];

/** Whether keys are combined; a record that names only its subject uses the subject's key alone. */
export const namesOthers = ({ subjects = [] }: Pick<RecordEnvelope, 'subjects'>): boolean => subjects.length > 0;

export const personsHeader = (persons: readonly Named[]): string =>
  persons.map(({ hash, key_id }) => `${hash}:${key_id}`).join(' ');

/** Persons of the header; null without the header. */
export function personsIn(headers: Readonly<Record<string, string>>): Named[] | null {
  const text = headers[PERSONS_HEADER];
  if (text === undefined) return null;
  return text.split(' ').map((one) => {
    const [hash = '', key_id = ''] = one.split(':');
    return { hash, key_id };
  });
}
