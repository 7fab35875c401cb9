import type { Engines } from '../../engines/engines';
import type { Logger } from '../../engines/log/port';
import { applyNotedErasures, erasePending } from '../../privacy/subject-keys/transfer';
import { createArchiveReader } from '../../maintenance/archive/reader';
import { reapplyErasures, type NotedErasuresDeps } from '../../privacy/erasure/noted-erasures';
import { RECORD_ERASERS } from './erasers';

/** Dependencies of {@link reapplyErasures}, over the engines. */
export const notedErasuresOn = (engines: Engines): NotedErasuresDeps => ({
  ...engines,
  readArchived: createArchiveReader(engines),
  erasers: RECORD_ERASERS,
  destroyNoted: (days) => applyNotedErasures(engines.db, engines.blobs, days),
  erasePending: (erase) => erasePending(engines.db, erase),
});

/**
 * Applies noted erasures before the first request. An unavailable blob store does not block the start: the hourly job
 * applies them later.
 */
export async function applyErasuresAtStart(engines: Engines, log: Logger): Promise<void> {
  try {
    const gone = await reapplyErasures(notedErasuresOn(engines));
    if (gone > 0) log.warn({ gone }, 'the database was recovered to before erasures: they are applied again');
  } catch (error) {
    log.error({ err: error }, 'noted erasures could not be applied at the start; the hourly job tries again');
  }
}
