import type { Graph } from '../../../domain/automation/automation-graphs';
import { graphText } from '../../../domain/automation/automations';
import { MAX_QUEUE, RUNS_A_MINUTE, type RunStart } from '../../../domain/automation/automation-runs';
import type { Queryable } from '../../../engines/postgres/port';
import type { SealedText } from '../../../privacy/subject-keys/port';
import { expirePending, finishRuns, type FollowUps, promote } from './progress';
import { lockAccount } from './rows';
import { isEnabled } from './work';

/** A run that asks to begin. */
export interface Asking {
  start: Omit<RunStart, 'cause' | 'automation_id'>;
  automation_id: string | null;
  reward_id: string | null;
  second_run: string;
  graph: Graph;
  cause: SealedText | { key_id: null; sealed: string | null };
}

/**
 * Decides whether a run begins, waits or is dropped, by the bounds of its account and the policy of its automation.
 * One cause starts one run.
 */
export async function admit(tx: Queryable, asking: Asking, then: FollowUps): Promise<void> {
  const { start, automation_id, reward_id, second_run } = asking;
  const { account_id, run_id } = start;
  await lockAccount(tx, account_id);
  const stored = await tx.query('select 1 as one from automation_runs where start_key = $1 and admitted', [
    start.start_key,
  ]);
  if (stored.length > 0) return;
  // It may have been disabled while this start waited for the lock.
  if (!(await isEnabled(tx, { account_id, automation_id, reward_id })))
    return refuse(tx, run_id, 'automation_disabled', then);
  await expirePending(tx, account_id, then);
  const others = second_run === 'parallel' ? { open: 0, pending: 0 } : await countOpen(tx, account_id, automation_id);
  if (second_run === 'skip' && others.open > 0) return refuse(tx, run_id, 'another_run', then);
  if (second_run === 'queue' && others.pending >= MAX_QUEUE) {
    await tx.query('update automation_accounts set dropped = dropped + 1 where account_id = $1', [account_id]);
    return refuse(tx, run_id, 'queue_full', then);
  }
  if (!(await countStart(tx, account_id))) return refuse(tx, run_id, 'too_many_runs', then);
  if (second_run === 'restart' && others.open > 0) {
    const end = { status: 'cancelled', error: 'restarted' } as const;
    await finishRuns(
      tx,
      'r.account_id = $1 and r.automation_id = $2 and r.admitted',
      [account_id, automation_id],
      end,
      then,
    );
  }
  await insert(tx, asking);
  await promote(tx, account_id, then);
}

/** Ends a run by hand that may not begin; others have no row. */
async function refuse(tx: Queryable, run_id: string, reason: string, then: FollowUps): Promise<void> {
  await finishRuns(tx, `r.id = $1 and r.status = 'pending'`, [run_id], { status: 'cancelled', error: reason }, then);
}

/** Counts the open runs of an automation, and those of them that have not begun. */
async function countOpen(
  tx: Queryable,
  account_id: string,
  automation_id: string | null,
): Promise<{ open: number; pending: number }> {
  const [counts] = await tx.query<{ open: number; pending: number }>(
    `select count(*)::int as open, (count(*) filter (where status = 'pending'))::int as pending from automation_runs
     where account_id = $1 and automation_id = $2 and admitted and status in ('pending', 'running', 'waiting')`,
    [account_id, automation_id],
  );
  return counts!;
}

/** Counts a start within its minute; false beyond the bound, which counts a dropped run. */
async function countStart(tx: Queryable, account_id: string): Promise<boolean> {
  const [row] = await tx.query<{ started: number }>(
    `update automation_accounts set
       started = case when minute = date_trunc('minute', now()) then least(started + 1, ${RUNS_A_MINUTE + 1}) else 1 end,
       dropped = dropped
         + case when minute = date_trunc('minute', now()) and started >= ${RUNS_A_MINUTE} then 1 else 0 end,
       minute = date_trunc('minute', now())
     where account_id = $1 returning started`,
    [account_id],
  );
  return row!.started <= RUNS_A_MINUTE;
}

/** Inserts the run as pending; of one by hand the row is there. */
async function insert(tx: Queryable, asking: Asking): Promise<void> {
  const { start, automation_id, reward_id, second_run, graph, cause } = asking;
  await tx.query(
    `insert into automation_runs
       (id, account_id, automation_id, reward_id, start_key, admitted, status, trigger, node_ids, event_id, depth,
        second_run, graph, cause_key_id, cause, persons, permissions, window_ms, expires_at, created_at)
     values ($1, $2, $3, $4, $5, true, 'pending', $6, $7::text[]::uuid[], $8, $9, $10, $11::json, $12, $13,
       $14::text[], $15::text[], $16, to_timestamp($17::float8 / 1000), clock_timestamp())
     on conflict (id) do update set admitted = true, node_ids = excluded.node_ids, second_run = excluded.second_run,
       graph = excluded.graph, expires_at = excluded.expires_at`,
    [
      ...[start.run_id, start.account_id, automation_id, reward_id, start.start_key, start.trigger, start.node_ids],
      ...[start.event_id, start.depth, second_run, graphText(graph), cause.key_id, cause.sealed],
      ...[start.persons, start.permissions, start.window_ms, start.at_ms + start.window_ms],
    ],
  );
}

/** Ends a run by hand whose automation is gone. */
export const refuseRun = refuse;
