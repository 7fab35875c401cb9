import { RUN_DAYS } from '../../../domain/automation/automation-runs';
import type { Queryable } from '../../../engines/postgres/port';

/** Runs that one statement deletes. */
const BATCH = 5_000;

/** Deletes runs that are older than they are kept, with their steps, and cooldowns that are over. */
export async function sweepRuns(db: Pick<Queryable, 'query'>, signal?: AbortSignal): Promise<number> {
  let all = 0;
  for (let some = BATCH; some >= BATCH && !signal?.aborted; all += some) {
    const old = await db.query(
      `delete from automation_runs where id in (
         select id from automation_runs where created_at < now() - interval '${RUN_DAYS} days'
           and status not in ('pending', 'running', 'waiting') order by created_at limit ${BATCH})
       returning 1 as one`,
    );
    some = old.length;
  }
  const over = await db.query('delete from automation_cooldowns where expires_at < now() returning 1 as one');
  return all + over.length;
}
