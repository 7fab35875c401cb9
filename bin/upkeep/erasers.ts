import { formerLoginsEraser } from '../../services/identity/former-logins';
import { profileEraser } from '../../services/identity/profiles';
import { answersEraser } from '../../api/rest/idempotency-erasure';
import { parkedWebhooksEraser } from '../../ingest/runtime/parked/parked-erasure';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { destroyKeys, destroyKeysOf } from '../../privacy/subject-keys/transfer';
import type { Database } from '../../engines/postgres/port';
import type { Eraser, ErasureServices, RecordEraser } from '../../kernel/eraser';
import { auditLogEraser } from '../../privacy/erasure/audit-log';
import { automationRunsEraser } from '../../privacy/erasure/automation-runs';
import { automationVariablesEraser } from '../../privacy/erasure/automation-variables';
import { botCommandsEraser } from '../../privacy/erasure/bot-commands';
import { chatLiveEraser } from '../../privacy/erasure/chat';
import { crawledChannelsEraser } from '../../privacy/erasure/crawled-channels';
import { eventLogEraser } from '../../privacy/erasure/events';
import { personNotesEraser } from '../../privacy/erasure/person-notes';
import { paymentsEraser } from '../../privacy/erasure/payments';

/** Erasers of the read models over a topic of records. */
export const RECORD_ERASERS: readonly RecordEraser[] = [eventLogEraser, paymentsEraser, chatLiveEraser];

/** Erasers of all other areas; test/rules/erasers.test.ts finds tables without an eraser. */
export const ERASERS: readonly Eraser[] = [
  parkedWebhooksEraser,
  profileEraser,
  answersEraser,
  auditLogEraser,
  personNotesEraser,
  botCommandsEraser,
  automationRunsEraser,
  crawledChannelsEraser,
  automationVariablesEraser,
  // Last: a repeated erasure of a user finds the person by these rows.
  formerLoginsEraser,
];

/** Dependencies of an erasure, over the engines. */
export const erasingOn = <T extends Omit<ErasureServices, 'texts'> & { db: Database }>(engines: T) => ({
  ...engines,
  texts: createPersonalTexts(engines.subject_keys),
  record_erasers: RECORD_ERASERS,
  erasers: ERASERS,
  destroyKeys: (subject: string) => destroyKeys(engines, subject),
  destroyKeysOf: (key_ids: readonly string[]) => destroyKeysOf(engines.db, engines.blobs, key_ids),
});
