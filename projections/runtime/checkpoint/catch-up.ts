import type { BrokerRecord } from '../../../engines/broker/port';
import type { ReadArchived } from '../rebuild/source';

/** Archived records of one partition, and the checkpoint's move past them. */
export interface ArchivedBatch {
  records: BrokerRecord[];
  move: { partition: number; from: string; to: string };
}

/**
 * Reads the records between a checkpoint (`from`) and the beginning of its topic (`to`), in batches of at most
 * `batch_records`; the last batch moves to `to`.
 * @throws HistoryGone before the first batch when no archive holds all of it
 */
export async function* archivedBatches(
  readArchived: ReadArchived,
  topic: string,
  partition: number,
  from: number,
  to: number,
  batch_records: number,
): AsyncGenerator<ArchivedBatch> {
  let at = from;
  const batch = (records: BrokerRecord[], next: number): ArchivedBatch => {
    const move = { partition, from: String(at), to: String(next) };
    at = next;
    return { records, move };
  };
  for await (const some of readArchived(topic, partition, from, to)) {
    for (let n = 0; n < some.length; n += batch_records) {
      const records = some.slice(n, n + batch_records);
      yield batch(records, records.at(-1)!.offset + 1);
    }
  }
  // Trailing offsets without records.
  if (at < to) yield batch([], to);
}
