import { sweepEvents } from '../maintenance/events-retention';
import { eventLog } from '../projections/events';
import type { TrimReadModel } from '../projections/runtime/rebuild-options';

/** Sweeps the event log's new tables before a rebuild swaps them in. */
export const trimRebuilt: TrimReadModel = async (projection, db, signal) =>
  projection === eventLog.name ? sweepEvents(db, signal) : 0;
