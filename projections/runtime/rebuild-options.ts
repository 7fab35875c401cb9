import type { Database } from '../../engines/postgres/port';
import type { Projection } from '../../kernel/projection';
import type { SourceDeps } from './rebuild-source';

export interface RebuildProgress {
  phase: 'replay' | 'swap' | 'done';
  /** Records (or events) read. */
  done: number;
  /** Up to the live checkpoint as last looked at; null when it cannot be counted (domain events). */
  total: number | null;
}

export interface RebuildOptions extends SourceDeps {
  db: Database;
  projections: readonly Projection[];
  name: string;
  onProgress?: (progress: RebuildProgress) => void;
  /** Records per write transaction. Default 5000: about a tenth of a second. */
  batch_records?: number | undefined;
  /**
   * Longest wait for all readers of the old tables at the swap, before it is given up and tried again. Default 500 ms.
   */
  lock_timeout_ms?: number;
  signal?: AbortSignal;
  /**
   * Removes from a read model what it keeps no longer; called for the new tables before they are swapped in. Statements
   * of the given database see the new tables.
   */
  trim?: TrimReadModel;
}

/** Run twice it does the same. */
export type TrimReadModel = (projection: string, db: Database, signal?: AbortSignal) => Promise<unknown>;

export interface RebuildResult {
  records: number;
  seconds: number;
  /** Records that could not be applied and wait as dead letters of the new tables. */
  parked: number;
}
