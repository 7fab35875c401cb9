import { randomUUID } from 'node:crypto';
import type { GraphNode } from '../../../domain/automation/automation-graphs';
import { MAX_STEPS, type RunStatus, RUNS_AT_ONCE } from '../../../domain/automation/automation-runs';
import { wait } from '../../../domain/automation/nodes/actions';
import type { Queryable } from '../../../engines/postgres/port';
import type { ChannelMessage } from '../../../kernel/projection';
import { runMessage } from './messages';
import { endRunsWhere, isOpen, lockAccount, lockedRun, type RunRow, runsWhere } from './rows';

/** A step to be carried out by a job. */
export interface NextStep {
  run: Pick<RunRow, 'account_id' | 'automation_id' | 'reward_id'>;
  run_id: string;
  step_id: string;
  node: GraphNode;
  /** RFC 3339; undefined: at once. */
  run_at: string | undefined;
}

/** Follow-ups of a change of runs, in its transaction. */
export interface FollowUps {
  steps: NextStep[];
  messages: ChannelMessage[];
}

/** Result of a step. */
export interface StepEnd {
  status: Extract<RunStatus, 'succeeded' | 'failed' | 'unknown' | 'expired'>;
  output: string | null;
  error: string | null;
  input_key_id: string | null;
  input: string | null;
  started_at: string;
}

const nodesAfter = ({ graph }: RunRow, node_id: string, output: string): GraphNode[] =>
  graph.edges
    .filter((edge) => edge.from === node_id && edge.output === output)
    .flatMap(({ to }) => graph.nodes.find(({ id }) => id === to) ?? []);

/** Adds steps for the nodes behind an output. False where the run would have too many. */
async function addSteps(
  tx: Queryable,
  run: RunRow,
  { node_id, output, expires_ms }: { node_id: string; output: string; expires_ms: number },
  { steps }: FollowUps,
): Promise<boolean> {
  for (const node of nodesAfter(run, node_id, output)) {
    if (run.step_count >= MAX_STEPS) return false;
    run.step_count += 1;
    const step_id = randomUUID();
    const is_wait = node.type === wait.type;
    const pause_ms = is_wait ? Number(node.config.seconds) * 1000 : 0;
    const run_at = is_wait ? new Date(Date.now() + pause_ms).toISOString() : undefined;
    const expiry = new Date(is_wait ? Date.now() + pause_ms + run.window_ms : expires_ms).toISOString();
    await tx.query(
      `insert into automation_steps (id, run_id, number, node_id, type, status, expires_at, started_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [
        ...[step_id, run.id, run.step_count, node.id, node.type],
        ...[is_wait ? 'waiting' : 'pending', expiry, is_wait ? new Date().toISOString() : null],
      ],
    );
    steps.push({ run, run_id: run.id, step_id, node, run_at });
  }
  return true;
}

/** Begins a run at its triggers. */
export async function beginRun(tx: Queryable, run: RunRow, then: FollowUps): Promise<void> {
  then.messages.push(runMessage('run:started', run, 'running'));
  await tx.query(`update automation_runs set status = 'running', started_at = clock_timestamp() where id = $1`, [
    run.id,
  ]);
  for (const node_id of run.node_ids) {
    const node = run.graph.nodes.find(({ id }) => id === node_id);
    if (node === undefined) continue;
    run.step_count += 1;
    await tx.query(
      `insert into automation_steps
         (id, run_id, number, node_id, type, status, output, expires_at, started_at, finished_at)
       values ($1, $2, $3, $4, $5, 'succeeded', 'next', to_timestamp($6::float8 / 1000), now(), now())`,
      [randomUUID(), run.id, run.step_count, node.id, node.type, run.expires_ms],
    );
    await addSteps(tx, run, { node_id, output: 'next', expires_ms: run.expires_ms }, then);
  }
  await settle(tx, run, then);
}

/** The status of a run follows from its open steps. */
async function settle(tx: Queryable, run: RunRow, then: FollowUps): Promise<void> {
  const [open] = await tx.query<{ count: number; waiting: number }>(
    `select count(*)::int as count, (count(*) filter (where status = 'waiting'))::int as waiting
     from automation_steps where run_id = $1 and status in ('pending', 'running', 'waiting')`,
    [run.id],
  );
  await tx.query('update automation_runs set step_count = $2, status = $3 where id = $1', [
    ...[run.id, run.step_count],
    open!.count > 0 && open!.waiting === open!.count ? 'waiting' : 'running',
  ]);
  if (open!.count === 0) await finishRun(tx, run, 'succeeded', null, then);
}

/** Ends the open runs `r` that a condition selects; their account must be locked. */
export async function finishRuns(
  tx: Queryable,
  condition: string,
  values: readonly unknown[],
  end: { status: RunStatus; error: string | null },
  { messages }: FollowUps,
): Promise<void> {
  for (const run of await endRunsWhere(tx, condition, values, end))
    messages.push(runMessage('run:finished', run, end.status));
}

const finishRun = (
  tx: Queryable,
  { id }: Pick<RunRow, 'id'>,
  status: RunStatus,
  error: string | null,
  then: FollowUps,
): Promise<void> => finishRuns(tx, 'r.id = $1', [id], { status, error }, then);

/** Ends pending runs of an account whose time is over; the account must be locked. */
export const expirePending = (tx: Queryable, account_id: string, then: FollowUps): Promise<void> =>
  finishRuns(
    tx,
    `r.account_id = $1 and r.status = 'pending' and r.expires_at <= clock_timestamp()`,
    [account_id],
    { status: 'expired', error: null },
    then,
  );

/** Stores the end of a step, and continues behind its output. */
export async function endStep(
  tx: Queryable,
  { account_id, run_id, step_id }: { account_id: string; run_id: string; step_id: string },
  end: StepEnd,
  then: FollowUps,
): Promise<void> {
  await lockAccount(tx, account_id);
  const run = await lockedRun(tx, run_id);
  if (run === undefined) return;
  const [step] = await tx.query<{ node_id: string; expires_ms: number }>(
    `update automation_steps set status = $2, output = $3, error = $4, input_key_id = $5, input = $6,
       started_at = coalesce(started_at, $7), finished_at = clock_timestamp()
     where id = $1 and status in ('pending', 'running', 'waiting')
     returning node_id, (extract(epoch from expires_at) * 1000)::float8 as expires_ms`,
    [step_id, end.status, end.output, end.error, end.input_key_id, end.input, end.started_at],
  );
  if (step === undefined) return;
  const { node_id, expires_ms } = step;
  then.messages.push(runMessage('run:step', run, end.status, node_id));
  if (!isOpen(run.status)) return;
  const output = end.output ?? 'failed';
  const goes_on =
    end.status === 'succeeded' || (end.status !== 'expired' && nodesAfter(run, node_id, output).length > 0);
  if (!goes_on) await finishRun(tx, run, end.status, end.error, then);
  else if (await addSteps(tx, run, { node_id, output, expires_ms }, then)) await settle(tx, run, then);
  else await finishRun(tx, run, 'failed', 'too_many_steps', then);
  await promote(tx, account_id, then);
}

/** Ends a run that its automation, its account or its person no longer wants. */
export async function cancelRun(tx: Queryable, run_id: string, account_id: string, then: FollowUps): Promise<void> {
  await lockAccount(tx, account_id);
  const run = await lockedRun(tx, run_id);
  if (run === undefined || !isOpen(run.status)) return;
  await finishRun(tx, run, 'cancelled', null, then);
  await promote(tx, account_id, then);
}

/** Begins pending runs of an account, oldest first, while it may have more; the account must be locked. */
export async function promote(tx: Queryable, account_id: string, then: FollowUps): Promise<void> {
  await expirePending(tx, account_id, then);
  for (;;) {
    const [active] = await tx.query<{ count: number }>(
      `select count(*)::int as count from automation_runs where account_id = $1 and status in ('running', 'waiting')`,
      [account_id],
    );
    if (active!.count >= RUNS_AT_ONCE) return;
    const [next] = await runsWhere(
      tx,
      `r.account_id = $1 and r.status = 'pending' and r.admitted and not (r.second_run = 'queue' and exists (
         select from automation_runs o where o.account_id = $1 and o.automation_id = r.automation_id
           and o.status in ('running', 'waiting')))
       order by r.created_at, r.id limit 1 for update`,
      [account_id],
    );
    if (next === undefined) return;
    if (next.expires_ms <= Date.now()) await finishRun(tx, next, 'expired', null, then);
    else await beginRun(tx, next, then);
  }
}
