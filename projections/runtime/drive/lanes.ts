import type { RecordBatch } from '../../../engines/broker/port';
import type { Batch } from './batch';
import { positionOf } from '../dead-letter/dead-letters';
import type { DecodedBatch } from './decode';

/** Concurrent transactions of a batch: while one waits for this process or its commit, the other works. */
const LANES = 2;
/** Records from which on a second commit is worthwhile. */
const LEAST_RECORDS = 200;

/**
 * Splits a decoded batch into parts that are committed concurrently, each with whole partitions: records of two
 * partitions have no order, and other processes write these concurrently as well. Mostly one part, because most batches
 * are small.
 */
export function splitIntoLanes({ records, progress }: RecordBatch, { items, undecodable }: DecodedBatch): Batch[] {
  const counts = new Map([...progress.keys()].map((partition) => [partition, 0]));
  for (const { partition } of records) counts.set(partition, counts.get(partition)! + 1);
  const some = records.length < LEAST_RECORDS ? 1 : Math.min(LANES, counts.size);
  const lanes = Array.from({ length: some }, () => {
    return { records: 0, batch: { items: [], undecodable: [], moves: [] } as Batch };
  });
  const lane_of = new Map<number, Batch>();
  // The largest partition first, each into the smallest lane.
  for (const [partition, count] of [...counts].sort(([, a], [, b]) => b - a)) {
    const lane = lanes.reduce((least, one) => (one.records < least.records ? one : least));
    lane.records += count;
    lane_of.set(partition, lane.batch);
    const { from, to } = progress.get(partition)!;
    lane.batch.moves.push({ partition, from: String(from), to: String(to) });
  }
  for (const item of items) lane_of.get(positionOf(item).partition)!.items.push(item);
  for (const parked of undecodable) lane_of.get(positionOf(parked.item).partition)!.undecodable.push(parked);
  return lanes.map(({ batch }) => batch);
}
