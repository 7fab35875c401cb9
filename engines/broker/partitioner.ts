import { partOf } from '../../lib/hash/murmur2';

/** Partition of a key: the same one that Kafka's own clients choose for this number of partitions. */
export function partitionOf(key: string, partitions: number): number {
  return partitions === 1 ? 0 : partOf(key, partitions);
}
