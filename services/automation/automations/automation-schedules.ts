import type { Graph } from '../../../domain/automation/automation-graphs';
import { onSchedule } from '../../../domain/automation/nodes/schedules';
import { nextDue, type Schedule, scheduleOf } from '../../../domain/automation/nodes/schedule-times';
import type { Database, Queryable } from '../../../engines/postgres/port';

/** Due schedules that one transaction takes, with the others of their automations. */
const BATCH = 500;
/** Transactions of one pass. */
const BATCHES = 100;

/** Sets a schedule: $1 automation, $2 node, $3 account, $4 schedule, $5 due time. An unchanged schedule goes on. */
const SET = `
  insert into automation_schedules as s (automation_id, node_id, account_id, schedule, next_due_at)
  values ($1, $2, $3, $4, $5)
  on conflict (automation_id, node_id) do update set schedule = excluded.schedule,
    next_due_at = case when s.schedule::text = excluded.schedule::text then s.next_due_at else excluded.next_due_at end`;
const DROP_OTHERS = 'delete from automation_schedules where automation_id = $1 and node_id <> all($2::uuid[])';
export const DROP_AUTOMATION_SCHEDULES = 'delete from automation_schedules where automation_id = $1';
export const DROP_AUTOMATION_SCHEDULES_OF_ACCOUNT = 'delete from automation_schedules where account_id = $1';

interface Scheduled {
  automation_id: string;
  account_id: string;
  graph: Graph;
}

/** Statements that set the schedules of an enabled automation, and drop those that its graph no longer has. */
export function scheduleStatements(
  { automation_id, account_id, graph }: Scheduled,
  now_ms: number,
): [statement: string, values: unknown[]][] {
  const schedules = graph.nodes.flatMap(({ id, type, config }) => {
    const schedule = type === onSchedule.type ? scheduleOf(config) : '';
    const due = typeof schedule === 'string' ? null : nextDue(schedule, now_ms);
    return due === null ? [] : [{ id, schedule, due: new Date(due).toISOString() }];
  });
  return [
    [DROP_OTHERS, [automation_id, schedules.map(({ id }) => id)]],
    ...schedules.map(({ id, schedule, due }): [string, unknown[]] => [
      SET,
      [automation_id, id, account_id, JSON.stringify(schedule), due],
    ]),
  ];
}

/** A schedule trigger that is due. */
export interface DueSchedule {
  automation_id: string;
  node_id: string;
  account_id: string;
  due_at: string;
}
interface Row extends DueSchedule {
  /** JSON text. */
  schedule: string;
  due_ms: number;
}

type Start = (tx: Queryable, due: readonly DueSchedule[]) => Promise<void>;

/**
 * Starts a run for each schedule that is due, in the transaction that moves its due time. Due times that were missed
 * together start one run, because the next one follows now. Returns the number of due schedules.
 */
export async function startDueAutomations(
  db: Pick<Database, 'transaction'>,
  start: Start,
  now_ms: number = Date.now(),
): Promise<number> {
  let started = 0;
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const some = await startSome(db, start, now_ms);
    started += some;
    if (some < BATCH) break;
  }
  return started;
}

function startSome(db: Pick<Database, 'transaction'>, start: Start, now_ms: number): Promise<number> {
  return db.transaction(async (tx) => {
    const due = await tx.query<Row & Record<string, unknown>>(
      `select automation_id, node_id, account_id, schedule, next_due_at as due_at,
         (extract(epoch from next_due_at) * 1000)::float8 as due_ms
       from automation_schedules where next_due_at <= to_timestamp($1::float8 / 1000) and automation_id in (
         select automation_id from automation_schedules where next_due_at <= to_timestamp($1::float8 / 1000)
         order by next_due_at limit ${BATCH})
       order by next_due_at for update skip locked`,
      [now_ms],
      'automation-schedules-due',
    );
    if (due.length === 0) return 0;
    const moved = due.map(({ automation_id, node_id, schedule, due_ms }) => {
      const next = nextAfter(JSON.parse(schedule) as Schedule, due_ms, now_ms);
      return { automation_id, node_id, next: next === null ? null : new Date(next).toISOString() };
    });
    await tx.query(
      `update automation_schedules s set next_due_at = coalesce(n.next, 'infinity')
       from json_to_recordset($1::json) n (automation_id uuid, node_id uuid, next timestamptz)
       where s.automation_id = n.automation_id and s.node_id = n.node_id`,
      [JSON.stringify(moved)],
      'automation-schedules-move',
    );
    await start(
      tx,
      due.map(({ automation_id, node_id, account_id, due_at }) => ({ automation_id, node_id, account_id, due_at })),
    );
    return due.length;
  });
}

/** The due time behind now; an interval keeps its phase. */
function nextAfter(schedule: Schedule, due_ms: number, now_ms: number): number | null {
  if (!('interval_seconds' in schedule)) return nextDue(schedule, Math.max(due_ms, now_ms));
  const interval = schedule.interval_seconds * 1000;
  return due_ms + interval * (Math.floor((now_ms - due_ms) / interval) + 1);
}
