/**
 * How many of something each bucket holds at one time, on all nodes. What a node holds ends with it: when it dies its
 * slots are free again within seconds. While the engine between the nodes is away each counts for itself.
 */
export interface Slots {
  /** Takes one of the bucket's `limit` slots; false when none is free. */
  take(bucket: string, limit: number): Promise<boolean>;
  /** Frees a slot that this node took; for other nodes within moments. */
  giveBack(bucket: string): void;
  close(): Promise<void>;
}
