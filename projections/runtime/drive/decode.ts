import { setImmediate as breathe } from 'node:timers/promises';
import type { BrokerRecord } from '../../../engines/broker/port';
import type { RecordLog } from '../../../engines/records/port';
import type { Item, Parked } from '../dead-letter/dead-letters';
import { describe } from './failures';

/** Records decoded without a pause: more would delay the statements of the current batch by tens of milliseconds. */
const SLICE = 250;

export interface DecodedBatch {
  items: Item[];
  undecodable: Parked[];
}

/**
 * Decodes stored records in their order, in slices between which other work runs; undecodable records are returned
 * apart.
 */
export async function decodeStored(
  log: Pick<RecordLog, 'decode'>,
  stored: readonly BrokerRecord[],
): Promise<DecodedBatch> {
  const batch: DecodedBatch = { items: [], undecodable: [] };
  for (let at = 0; at < stored.length; at += SLICE) {
    if (at > 0) await breathe();
    const slice = stored.slice(at, at + SLICE);
    const { records, undecodable } = await log.decode(slice);
    let next = 0;
    for (const record of records) {
      // The order is kept, so the records between two decoded ones are undecodable.
      while (slice[next]!.offset !== record.offset || slice[next]!.partition !== record.partition) next += 1;
      batch.items.push({ kind: 'record', record, stored: slice[next]! });
    }
    for (const { record, error } of undecodable) {
      batch.undecodable.push({
        item: { kind: 'undecodable', stored: record },
        reason: 'undecodable',
        error: describe(error),
      });
    }
  }
  return batch;
}
