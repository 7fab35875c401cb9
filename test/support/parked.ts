import type { Database } from '../../engines/postgres/port';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { createParkedWebhooks, type ParkedWebhooks } from '../../ingest/runtime/parked/parked';

/** What seals the records and parked bodies of these tests. */
export const TEST_KEYS = parseMasterKeys(`t:${Buffer.alloc(32, 7).toString('base64')}`);

/** Parked deliveries of a test's database. */
export const testParked = (db: Database): ParkedWebhooks =>
  createParkedWebhooks({ db, texts: createPersonalTexts(createSubjectKeys({ db, master_keys: TEST_KEYS })) });
