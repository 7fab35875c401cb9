/**
 * Bounds the number of slots taken at one time per bucket, on all nodes. The slots of a node that dies are free again
 * within seconds. While the engine between the nodes is unavailable, each node counts for itself.
 */
export interface Slots {
  /** Takes one of the bucket's `limit` slots; false when none is free. */
  take(bucket: string, limit: number): Promise<boolean>;
  /** Frees a slot that this node took; for other nodes within moments. */
  giveBack(bucket: string): void;
  close(): Promise<void>;
}
