import type { Database } from '../../../engines/postgres/port';
import type { Projection } from '../../../kernel/projection';
import type { SourceDeps } from './source';

export interface RebuildProgress {
  phase: 'replay' | 'swap' | 'done';
  /** Records (or events) read. */
  done: number;
  /** Records up to the live checkpoint at the last read; null when they cannot be counted (domain events). */
  total: number | null;
}

export interface RebuildOptions extends SourceDeps {
  db: Database;
  projections: readonly Projection[];
  name: string;
  onProgress?: (progress: RebuildProgress) => void;
  /** Records per write transaction. Default 5000: about a tenth of a second. */
  batch_records?: number | undefined;
  /** Longest wait for all readers of the old tables at a swap, before it is retried. Default 500 ms. */
  lock_timeout_ms?: number;
  signal?: AbortSignal;
  /** Also replaces rows of a later version by this program's, after a rollback. Default: refused. */
  older?: boolean;
  /**
   * Deletes expired rows of a read model; called for the new tables before the swap. Statements of the given database
   * see the new tables.
   */
  trim?: TrimReadModel;
}

/** Idempotent. */
export type TrimReadModel = (projection: string, db: Database, signal?: AbortSignal) => Promise<unknown>;

export interface RebuildResult {
  records: number;
  seconds: number;
  /** Records that could not be applied and became dead letters of the new tables. */
  parked: number;
}
