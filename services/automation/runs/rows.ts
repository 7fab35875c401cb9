import type { Graph } from '../../../domain/automation/automation-graphs';
import type { RunStatus } from '../../../domain/automation/automation-runs';
import type { Queryable } from '../../../engines/postgres/port';

/** A run as its steps need it. */
export interface RunRow {
  id: string;
  account_id: string;
  automation_id: string | null;
  reward_id: string | null;
  status: RunStatus;
  trigger: string;
  node_ids: string[];
  event_id: string | null;
  depth: number;
  second_run: string;
  graph: Graph;
  cause_key_id: string | null;
  cause: string | null;
  persons: string[];
  permissions: string[] | null;
  window_ms: number;
  step_count: number;
  /** Milliseconds since 1970. */
  expires_ms: number;
}

export interface StepRow {
  id: string;
  node_id: string;
  type: string;
  status: RunStatus;
  /** Milliseconds since 1970. */
  expires_ms: number;
}

const RUN_COLUMNS = `r.id, r.account_id, r.automation_id, r.reward_id, r.status, r.trigger, r.node_ids, r.event_id,
  r.depth, r.second_run, r.graph, r.cause_key_id, r.cause, r.persons, r.permissions, r.window_ms,
  r.step_count, (extract(epoch from r.expires_at) * 1000)::float8 as expires_ms`;

const OPEN = `('pending', 'running', 'waiting')`;
export const isOpen = (status: RunStatus): boolean => ['pending', 'running', 'waiting'].includes(status);

type Read = Omit<RunRow, 'graph'> & { graph: string } & Record<string, unknown>;
const parsed = (row: Read): RunRow => ({ ...row, graph: JSON.parse(row.graph) as Graph });

/** Runs that a condition selects; the rows are locked where it says so. */
export async function runsWhere(tx: Queryable, condition: string, values: readonly unknown[]): Promise<RunRow[]> {
  const rows = await tx.query<Read>(`select ${RUN_COLUMNS} from automation_runs r where ${condition}`, values);
  return rows.map(parsed);
}

export const lockedRun = async (tx: Queryable, id: string): Promise<RunRow | undefined> =>
  (await runsWhere(tx, 'r.id = $1 for update', [id]))[0];

export async function stepOf(db: Pick<Queryable, 'query'>, id: string): Promise<StepRow | undefined> {
  const [row] = await db.query<StepRow & Record<string, unknown>>(
    `select id, node_id, type, status, (extract(epoch from expires_at) * 1000)::float8 as expires_ms
     from automation_steps where id = $1`,
    [id],
    'automation-step',
  );
  return row;
}

/** Locks the bounds of an account: starts and ends of its runs come one after the other. */
export async function lockAccount(tx: Queryable, account_id: string): Promise<void> {
  await tx.query('insert into automation_accounts (account_id) values ($1) on conflict do nothing', [account_id]);
  await tx.query('select 1 as one from automation_accounts where account_id = $1 for update', [account_id]);
}

/** A run as messages name it. */
export type NamedRun = Pick<RunRow, 'id' | 'account_id' | 'automation_id' | 'reward_id'>;

/** Ends the open runs that a condition selects, and the steps of them that are open. Returns these runs. */
export async function endRunsWhere(
  tx: Queryable,
  condition: string,
  values: readonly unknown[],
  { status, error }: { status: RunStatus; error: string | null },
): Promise<NamedRun[]> {
  const at = values.length;
  return tx.query<NamedRun & Record<string, unknown>>(
    `with ended as (
       update automation_runs r set status = $${at + 1}, error = $${at + 2}, finished_at = clock_timestamp()
       where ${condition} and r.status in ${OPEN} returning r.id, r.account_id, r.automation_id, r.reward_id
     ), steps as (
       update automation_steps s set status = $${at + 3}, finished_at = clock_timestamp()
       from ended e where s.run_id = e.id and s.status in ${OPEN}
     )
     select * from ended`,
    [...values, status, error, status === 'expired' ? 'expired' : 'cancelled'],
  );
}
