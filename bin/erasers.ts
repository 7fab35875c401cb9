import { profileEraser } from '../access/profiles';
import { answersEraser } from '../api/idempotency-erasure';
import { parkedWebhooksEraser } from '../ingest/runtime/parked-erasure';
import { createPersonalTexts } from '../engines/subject-keys/texts';
import { noteErasures } from '../engines/subject-keys/transfer';
import type { Eraser, ErasureServices, RecordEraser } from '../kernel/eraser';
import { auditLogEraser } from '../maintenance/audit-log-erasure';
import { chatLiveEraser } from '../maintenance/chat-live-erasure';
import { eventLogEraser } from '../maintenance/event-log-erasure';
import { paymentsEraser } from '../maintenance/payments-erasure';

/** What every read model over a topic of records does when a person is erased. */
export const RECORD_ERASERS: readonly RecordEraser[] = [eventLogEraser, paymentsEraser, chatLiveEraser];

/** What every other area does; test/erasers.test.ts finds a table that none of them cleans. */
export const ERASERS: readonly Eraser[] = [parkedWebhooksEraser, profileEraser, answersEraser, auditLogEraser];

/** Destroys every key of a person, here and in every backup. Returns how many. */
export async function destroyKeys(
  { blobs, subject_keys }: Pick<ErasureServices, 'blobs' | 'subject_keys'>,
  subject: string,
): Promise<number> {
  // The note comes first: a crash in between leaves a key that the next run destroys, never a key that a restore brings
  // back.
  await noteErasures(blobs, await subject_keys.keysOf(subject), new Date().toISOString());
  return subject_keys.erase(subject);
}

/** Forgets who logged in here, as `lumio erase user:<id>` does. Done again it finds nothing. */
export async function eraseUser(engines: Omit<ErasureServices, 'texts'>, id: string): Promise<void> {
  const services = { ...engines, texts: createPersonalTexts(engines.subject_keys) };
  const person = { subject: `user:${id}`, kind: 'user', id };
  await destroyKeys(services, person.subject);
  for (const eraser of ERASERS) await eraser.erase(person, services);
}
