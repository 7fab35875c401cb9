import { sweepChat } from '../../maintenance/retention/chat';
import { sweepEvents } from '../../maintenance/retention/events';
import { chatLive } from '../../projections/chat/chat';
import { eventLog } from '../../projections/events/events';
import type { TrimReadModel } from '../../projections/runtime/rebuild/options';

const SWEEPS: ReadonlyMap<string, (...of: Parameters<typeof sweepEvents>) => Promise<number>> = new Map([
  [eventLog.name, sweepEvents],
  [chatLive.name, sweepChat],
]);

/** Sweeps a read model's new tables before a rebuild swaps them in. */
export const trimRebuilt: TrimReadModel = async (projection, db, signal) =>
  (await SWEEPS.get(projection)?.(db, signal)) ?? 0;
