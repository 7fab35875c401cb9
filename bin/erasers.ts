import { profileEraser } from '../access/profiles';
import { answersEraser } from '../api/idempotency-erasure';
import { parkedWebhooksEraser } from '../ingest/runtime/parked-erasure';
import { createPersonalTexts } from '../engines/subject-keys/texts';
import { destroyKeys } from '../engines/subject-keys/transfer';
import type { Eraser, ErasureServices, RecordEraser } from '../kernel/eraser';
import { auditLogEraser } from '../maintenance/audit-log-erasure';
import { chatLiveEraser } from '../maintenance/chat-erasure';
import { eventLogEraser } from '../maintenance/events-erasure';
import { paymentsEraser } from '../maintenance/payments-erasure';

/** What every read model over a topic of records does when a person is erased. */
export const RECORD_ERASERS: readonly RecordEraser[] = [eventLogEraser, paymentsEraser, chatLiveEraser];

/** What every other area does; test/erasers.test.ts finds a table that none of them cleans. */
export const ERASERS: readonly Eraser[] = [parkedWebhooksEraser, profileEraser, answersEraser, auditLogEraser];

/** What an erasure works with, over the engines. */
export const erasingOn = <T extends Omit<ErasureServices, 'texts'>>(engines: T) => ({
  ...engines,
  texts: createPersonalTexts(engines.subject_keys),
  record_erasers: RECORD_ERASERS,
  erasers: ERASERS,
  destroyKeys: (subject: string) => destroyKeys(engines, subject),
});
