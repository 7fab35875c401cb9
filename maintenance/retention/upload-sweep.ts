import type { Blobs } from '../../engines/blobs/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import { allSettledOrThrow } from '../../lib/async/all-settled';
import type { Upload } from '../../kernel/operations/transfers';

/** Much longer than a request may take, and than a read model may be behind without an alarm. */
const LEFT_AFTER = "interval '1 day'";
/** Blobs per transaction. */
const TOGETHER = 100;

export interface UploadSweepDeps {
  db: Database;
  blobs: Pick<Blobs, 'delete'>;
  /** Uploads of all operations. */
  uploads: readonly Pick<Upload, 'inUse'>[];
}

/**
 * Deletes blobs of uploads that a killed process left, unless something refers to them. Deletes the row last, so that a
 * crash in between repeats the deletion. Returns the number of blobs deleted.
 * @throws the error of an upload's `inUse`: then nothing of that page is deleted
 */
export async function sweepUploads(deps: UploadSweepDeps, signal?: AbortSignal): Promise<number> {
  let swept = 0;
  for (let found = TOGETHER; found === TOGETHER && !signal?.aborted;) {
    const page = await deps.db.transaction((tx) => sweepPage(tx, deps));
    swept += page.swept;
    found = page.found;
  }
  return swept;
}

async function sweepPage(
  tx: Queryable,
  { blobs, uploads }: UploadSweepDeps,
): Promise<{ found: number; swept: number }> {
  const rows = await tx.query<{ key: string }>(
    `select key from uploads_under_way where begun_at < now() - ${LEFT_AFTER}
     order by begun_at, key limit ${TOGETHER} for update skip locked`,
  );
  const keys = rows.map(({ key }) => key);
  const in_use = new Set<string>();
  for (const { inUse } of uploads) for (const key of await inUse(keys, tx)) in_use.add(key);
  const unnamed = keys.filter((key) => !in_use.has(key));
  // Concurrently, because sequential deletions could exceed the transaction's idle timeout.
  await allSettledOrThrow(unnamed.map((key) => blobs.delete(key)));
  await tx.query('delete from uploads_under_way where key = any($1::text[])', [keys]);
  return { found: keys.length, swept: unnamed.length };
}
