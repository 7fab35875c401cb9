import { END_RUNS } from '../../../domain/automation/automation-runs';
import type { Queryable } from '../../../engines/postgres/port';
import type { JobRequest } from '../../../kernel/job';
import { accountFlags } from '../account-flags';

const FLAG = 'feature:automation';

/** Requests that end the open runs of accounts without the feature. */
export async function featureEnds(db: Pick<Queryable, 'query'>, now_ms: number = Date.now()): Promise<JobRequest[]> {
  const rows = await db.query<{ account_id: string }>(
    `select distinct account_id from automation_runs where status in ('pending', 'running', 'waiting')`,
    [],
    'automation-open-runs',
  );
  const accounts = rows.map(({ account_id }) => account_id);
  const isOn = await accountFlags(db, accounts, [FLAG]);
  const before = new Date(now_ms).toISOString();
  return accounts
    .filter((account_id) => !isOn(FLAG, account_id))
    .map((account_id) => ({
      ...{ name: END_RUNS, key: `${account_id}:${before}` },
      payload: { account_id, automation_id: null, before },
    }));
}
