import { setImmediate as breathe } from 'node:timers/promises';
import type { BrokerRecord } from '../../engines/broker/port';
import type { RecordLog } from '../../engines/records/port';
import type { Item, Parked } from './dead-letters';
import { describe } from './failures';

/**
 * Records decoded at a stretch: more would keep the statements of the batch in hand waiting for tens of milliseconds.
 */
const SLICE = 250;

export interface DecodedBatch {
  items: Item[];
  undecodable: Parked[];
}

/**
 * Decodes stored records in their order, in slices between which other work gets its turn; what cannot be decoded comes
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
      // The order is kept, so what lies between two decoded records could not be decoded.
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

/** Decodes the next batch while the one in hand is written. A failure shows when that batch is asked for. */
export class DecodeAhead {
  private readonly begun = new WeakMap<readonly BrokerRecord[], Promise<DecodedBatch>>();

  constructor(private readonly log: Pick<RecordLog, 'decode'>) {}

  begin(stored: readonly BrokerRecord[]): void {
    const decoded = decodeStored(this.log, stored);
    decoded.catch(() => undefined);
    this.begun.set(stored, decoded);
  }

  /** What was begun for this very list, or decoded now. */
  decoded(stored: readonly BrokerRecord[]): Promise<DecodedBatch> {
    return this.begun.get(stored) ?? decodeStored(this.log, stored);
  }
}
