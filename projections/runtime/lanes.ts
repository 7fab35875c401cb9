import type { RecordBatch } from '../../engines/broker/port';
import type { Batch } from './batch';
import { placeOf } from './dead-letters';
import type { DecodedBatch } from './decode';

/** Transactions that a batch is written by: while one waits for this process or its commit, the other is at work. */
const LANES = 2;
/** Records from which on that is worth a second commit. */
const LEAST_RECORDS = 200;

/**
 * A decoded batch in parts that are committed side by side, each with whole partitions: what is of two partitions has
 * no order, and other processes write them side by side as well. Mostly one, since most batches are small.
 */
export function lanesOf({ records, progress }: RecordBatch, { items, undecodable }: DecodedBatch): Batch[] {
  const counts = new Map([...progress.keys()].map((partition) => [partition, 0]));
  for (const { partition } of records) counts.set(partition, counts.get(partition)! + 1);
  const some = records.length < LEAST_RECORDS ? 1 : Math.min(LANES, counts.size);
  const lanes = Array.from({ length: some }, () => {
    return { records: 0, batch: { items: [], undecodable: [], moves: [] } as Batch };
  });
  const lane_of = new Map<number, Batch>();
  // The largest first, each to the lane with the least.
  for (const [partition, count] of [...counts].sort(([, a], [, b]) => b - a)) {
    const lane = lanes.reduce((least, one) => (one.records < least.records ? one : least));
    lane.records += count;
    lane_of.set(partition, lane.batch);
    const { from, to } = progress.get(partition)!;
    lane.batch.moves.push({ partition, from: String(from), to: String(to) });
  }
  for (const item of items) lane_of.get(placeOf(item).partition)!.items.push(item);
  for (const parked of undecodable) lane_of.get(placeOf(parked.item).partition)!.undecodable.push(parked);
  return lanes.map(({ batch }) => batch);
}
