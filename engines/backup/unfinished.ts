import { z } from 'zod';
import { LOCKS } from '../locks/port';
import type { Queryable } from '../postgres/port';
import type { LogRestores } from './log-restores';
import type { Manifest } from './manifest';

/** Fact of `installation` that exists from the commit of a restore's rows until its last step. */
const UNFINISHED = 'restore_unfinished';

const Unfinished = z.object({
  /** `taken_at` of the backup's manifest. */
  taken_at: z.string(),
  installation_id: z.string(),
  log_restores: z.object({
    topics: z.enum(['tables', 'write', 'keep']),
    events: z.enum(['tables', 'write', 'keep']),
  }),
  /** Progress of the logs outside the database. */
  logs: z.enum(['untouched', 'begun', 'done']),
});
/** A restore whose rows are committed, but whose other steps are not all done. */
export type UnfinishedRestore = z.infer<typeof Unfinished>;

export const CONTINUE = 'lumio restore PLACE --keys FILE --continue';

/** The mark that is written in the transaction of the rows. */
export const unfinishedOf = (manifest: Manifest, log_restores: LogRestores): UnfinishedRestore => ({
  taken_at: manifest.taken_at,
  installation_id: manifest.installation_id,
  log_restores,
  logs: 'untouched',
});

export async function markUnfinished(db: Queryable, mark: UnfinishedRestore): Promise<void> {
  await db.query(
    `insert into installation (name, value) values ($1, $2)
     on conflict (name) do update set value = excluded.value`,
    [UNFINISHED, JSON.stringify(mark)],
  );
}

export async function markFinished(db: Queryable): Promise<void> {
  await db.query('delete from installation where name = $1', [UNFINISHED]);
}

/** The mark of an unfinished restore; undefined when the database is complete, or has no schema yet. */
export async function unfinishedRestore(db: Queryable): Promise<UnfinishedRestore | undefined> {
  const [tables] = await db.query(`select to_regclass('public.installation') is not null as made`);
  if (!tables!.made) return undefined;
  const [row] = await db.query<{ value: string }>('select value from installation where name = $1', [UNFINISHED]);
  return row && Unfinished.parse(JSON.parse(row.value));
}

/** @throws Error in one line when a restore of this database is running, or ended before its last step */
export async function refuseUnfinishedRestore(db: Queryable): Promise<void> {
  // A lock of the statement's own transaction, and released with it.
  const [lock] = await db.query('select pg_try_advisory_xact_lock_shared($1) as free', [LOCKS.restore]);
  if (!lock!.free) throw new Error('a restore of this database is under way: run this command when it has ended');
  const mark = await unfinishedRestore(db);
  if (mark)
    throw new Error(
      `a restore of the backup of ${mark.taken_at} ended before its last step, ` +
        `so this database is not whole: run ${CONTINUE}`,
    );
}

/** @throws Error in one line when the backup is another one, or the writing of its logs was interrupted */
export function checkContinuable(mark: UnfinishedRestore | undefined, manifest: Manifest): UnfinishedRestore {
  if (!mark) throw new Error('there is no unfinished restore in this database');
  if (mark.taken_at !== manifest.taken_at || mark.installation_id !== manifest.installation_id)
    throw new Error(`the unfinished restore is of the backup of ${mark.taken_at}, this one is of ${manifest.taken_at}`);
  if (mark.logs === 'begun' && Object.values(mark.log_restores).includes('write'))
    throw new Error(
      'the restore ended while it wrote logs outside the database: restore into a new database and new engines',
    );
  return mark;
}
