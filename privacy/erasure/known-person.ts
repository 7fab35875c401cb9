import type { Blobs } from '../../engines/blobs/port';
import type { EventStore } from '../../engines/event-store/port';
import type { ErasureServices, Eraser, Person, RecordEraser } from '../../kernel/eraser';
import type { SubjectKeys } from '../subject-keys/port';
import { indexAll, indexesSubject, type TopicIndexDeps } from '../../maintenance/archive/subject-index';

export interface KnownPersonDeps extends ErasureServices, TopicIndexDeps {
  db: TopicIndexDeps['db'];
  stored_events: Pick<EventStore, 'id' | 'readAll'>;
  erasers: readonly Eraser[];
  record_erasers: readonly RecordEraser[];
  /** Whether a user of this id is or was registered. */
  isUser(id: string): Promise<boolean>;
}

/**
 * Prefix of notes in the blob store of the persons whose erasure was begun, by the keyed hash of their subject. The
 * hash is hexadecimal, because some stores ignore the case of keys.
 */
const ERASED_SUBJECTS = 'erased-subjects/';

/** Whether a key, a row, a note of an erasure, a record or an event names the person. */
export async function isKnown(deps: KnownPersonDeps, person: Person): Promise<boolean> {
  if ((await deps.subject_keys.keysOf(person.subject)).length > 0) return true;
  if (person.kind === 'user' && (await deps.isUser(person.id))) return true;
  const hash = await hashOf(deps, person.subject);
  if ((await deps.blobs.head(noteKeyOf(hash))) !== undefined) return true;
  for (const eraser of deps.erasers) if (await eraser.names(person, deps)) return true;
  await indexAll(deps, [...new Set(deps.record_erasers.map(({ topic }) => topic))]);
  return indexesSubject(deps.db, hash);
}

/** Notes that the erasure of a subject was begun. Repeatable. */
export async function noteSubject(
  deps: { blobs: Blobs; subject_keys: Pick<SubjectKeys, 'hashesOf'> },
  subject: string,
): Promise<void> {
  const note = { noted_at: new Date().toISOString() };
  await deps.blobs.put(noteKeyOf(await hashOf(deps, subject)), Buffer.from(JSON.stringify(note)), 'application/json');
}

const noteKeyOf = (hash: string): string => `${ERASED_SUBJECTS}${Buffer.from(hash, 'base64url').toString('hex')}.json`;

const hashOf = async ({ subject_keys }: { subject_keys: Pick<SubjectKeys, 'hashesOf'> }, subject: string) =>
  (await subject_keys.hashesOf([subject])).get(subject)!;
