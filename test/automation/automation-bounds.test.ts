import { randomUUID } from 'node:crypto';
import type { Graph } from '../../domain/automation/automation-graphs';
import { MAX_QUEUE, MAX_STEPS, RUNS_A_MINUTE, RUNS_AT_ONCE } from '../../domain/automation/automation-runs';
import { admit } from '../../services/automation/runs/admission';
import { writeOutbox } from '../../projections/runtime/outbox/outbox';
import { runStep } from '../../reactors/automation/automation-runs';
import { endStep, type FollowUps } from '../../services/automation/runs/progress';
import { endRuns } from '../../services/automation/runs/ending';
import { reportDropped } from '../../services/automation/runs/dropped';
import { sweepRuns } from '../../services/automation/runs/retention';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t?.drop());

const [trigger, pause] = [randomUUID(), randomUUID()];
const graph: Graph = {
  nodes: [
    { id: trigger, type: 'trigger:manual', config: {} },
    { id: pause, type: 'action:wait', config: { seconds: 60 } },
  ],
  edges: [{ from: trigger, to: pause, output: 'next' }],
};

/** Admits runs of an automation of an account. */
function runsOf(account_id: string, second_run: string, { nodes, edges }: Graph = graph) {
  const automation_id = randomUUID();
  const made = t.db.query(
    `insert into automations (id, account_id, name, enabled, second_run, revision, graph, created_at, updated_at)
     values ($1, $2, 'One', true, $3, 1, '{}', now(), now())`,
    [automation_id, account_id, second_run],
  );
  return async (before = 'select 1 as one'): Promise<FollowUps> => {
    const run_id = randomUUID();
    const start = {
      ...{ account_id, run_id, start_key: run_id, trigger: 'trigger:manual', node_ids: [trigger], event_id: null },
      ...{ depth: 0, at_ms: Date.now(), window_ms: 60_000, permissions: null, persons: [], subject: null },
    };
    const cause = { key_id: null, sealed: null };
    const asking = { start, automation_id, reward_id: null, second_run, graph: { nodes, edges }, cause };
    const then: FollowUps = { steps: [], messages: [] };
    await made;
    await t.db.transaction(async (tx) => {
      await tx.query(before);
      await admit(tx, asking, then);
    });
    return then;
  };
}
const counted = (account_id: string) =>
  t.db.query('select status, count(*)::int as count from automation_runs where account_id = $1 group by 1 order by 1', [
    account_id,
  ]);

test('an account has 20 runs at once, starts 600 a minute, and gets the number of the dropped ones once', async () => {
  const account_id = randomUUID();
  const begin = runsOf(account_id, 'parallel');
  for (let n = 0; n < RUNS_AT_ONCE + 2; n += 1) await begin();
  expect(await counted(account_id)).toEqual([
    { status: 'pending', count: 2 },
    { status: 'waiting', count: RUNS_AT_ONCE },
  ]);
  await begin(`update automation_accounts set minute = date_trunc('minute', now()), started = ${RUNS_A_MINUTE}`);
  const sent = () => t.db.query<{ data: string }>(`select data from outbox where event_type = 'run:dropped'`);
  // A report that is not committed is made again.
  const failing = async (...published: Parameters<typeof writeOutbox>) => {
    await writeOutbox(...published);
    throw new Error('the process ends');
  };
  await expect(reportDropped(t.db, failing)).rejects.toThrow('the process ends');
  expect(await sent()).toEqual([]);
  expect([await reportDropped(t.db, writeOutbox), await reportDropped(t.db, writeOutbox)]).toEqual([1, 0]);
  expect((await sent()).map(({ data }) => JSON.parse(data))).toEqual([{ type: 'run:dropped', count: 1 }]);
});

test('a queue has 100 waiting runs, and further ones are dropped', async () => {
  const account_id = randomUUID();
  const begin = runsOf(account_id, 'queue');
  for (let n = 0; n < MAX_QUEUE + 3; n += 1) await begin();
  expect(await counted(account_id)).toEqual([
    { status: 'pending', count: MAX_QUEUE },
    { status: 'waiting', count: 1 },
  ]);
  const [account] = await t.db.query('select dropped from automation_accounts where account_id = $1', [account_id]);
  expect(account).toEqual({ dropped: 2 });
});

test('runs that are skipped take nothing of the 600 a minute', async () => {
  const account_id = randomUUID();
  const begin = runsOf(account_id, 'skip');
  for (let n = 0; n < 3; n += 1) await begin(`update automation_accounts set minute = date_trunc('minute', now())`);
  const [account] = await t.db.query('select started, dropped from automation_accounts where account_id = $1', [
    account_id,
  ]);
  expect(account).toEqual({ started: 1, dropped: 0 });
});

const expire = (account_id: string) =>
  t.db.query(`update automation_runs set expires_at = now() where account_id = $1 and status = 'pending'`, [
    account_id,
  ]);

test('runs of a queue whose time is over leave it', async () => {
  const account_id = randomUUID();
  const begin = runsOf(account_id, 'queue');
  for (let n = 0; n < MAX_QUEUE + 1; n += 1) await begin();
  await expire(account_id);
  await begin();
  expect(await counted(account_id)).toEqual([
    { status: 'expired', count: MAX_QUEUE },
    { status: 'pending', count: 1 },
    { status: 'waiting', count: 1 },
  ]);
});

test('runs that no place became free for expire together', async () => {
  const account_id = randomUUID();
  const begin = runsOf(account_id, 'parallel');
  for (let n = 0; n < RUNS_AT_ONCE; n += 1) await begin();
  await t.db.query(
    `insert into automation_runs (id, account_id, automation_id, start_key, admitted, status, trigger, node_ids, depth,
       second_run, graph, persons, window_ms, expires_at, created_at)
     select gen_random_uuid(), account_id, automation_id, gen_random_uuid(), true, 'pending', trigger, node_ids, depth,
       second_run, graph, persons, window_ms, now(), now()
     from (select * from automation_runs where account_id = $1 limit 1) r, generate_series(1, 1000)`,
    [account_id],
  );
  const then: FollowUps = { steps: [], messages: [] };
  let statements = 0;
  await t.db.transaction((tx) => {
    const counting = {
      ...tx,
      query: (...asked: Parameters<typeof tx.query>) => {
        statements += 1;
        return tx.query(...asked);
      },
    } as typeof tx;
    return endRuns(counting, { account_id, automation_id: null, reward_id: randomUUID(), before: 'infinity' }, then);
  });
  expect(then.messages).toHaveLength(1_000);
  expect(statements).toBeLessThan(20);
  expect(await counted(account_id)).toEqual([
    { status: 'expired', count: 1_000 },
    { status: 'waiting', count: RUNS_AT_ONCE },
  ]);
});

test('all steps without calls of an account share a lane, so that thousands leave workers to other accounts', () => {
  const [account_id, run_id, step_id] = [randomUUID(), randomUUID(), randomUUID()];
  const laneOf = (type: string) =>
    runStep.lane?.({ account_id, owner: 'o', lane: `${account_id}:${type}`, run_id, step_id });
  expect([laneOf('action:wait'), laneOf('condition:compare')]).toEqual(Array(2).fill(`${account_id}:steps`));
});

test('a run fails beyond 1,000 steps', async () => {
  const account_id = randomUUID();
  const loop = { ...graph, edges: [...graph.edges, { from: pause, to: pause, output: 'done' }] };
  let { steps } = await runsOf(account_id, 'parallel', loop)();
  // The first steps but five are taken as made.
  await t.db.query('update automation_runs set step_count = $2 where account_id = $1', [account_id, MAX_STEPS - 5]);
  let made = MAX_STEPS - 5;
  while (steps.length > 0) {
    const then: FollowUps = { steps: [], messages: [] };
    const { run_id, step_id } = steps[0]!;
    const end = { status: 'succeeded', output: 'done', error: null, input: null, input_key_id: null } as const;
    await t.db.transaction((tx) =>
      endStep(tx, { account_id, run_id, step_id }, { ...end, started_at: new Date().toISOString() }, then),
    );
    steps = then.steps;
    made += steps.length;
  }
  expect(made).toBe(MAX_STEPS);
  const runs = await t.db.query('select status, error, step_count from automation_runs where account_id = $1', [
    account_id,
  ]);
  expect(runs).toEqual([{ status: 'failed', error: 'too_many_steps', step_count: expect.any(Number) }]);
});

test('a disabled automation begins no run, and ends those that began since; an enabled one keeps them', async () => {
  const account_id = randomUUID();
  const begin = runsOf(account_id, 'parallel');
  const end = () =>
    t.db.transaction((tx) =>
      endRuns(
        tx,
        { account_id, automation_id: null, reward_id: null, before: '2026-01-01T00:00:00Z' },
        { steps: [], messages: [] },
      ),
    );
  await begin();
  await end();
  expect(await counted(account_id)).toEqual([{ status: 'waiting', count: 1 }]);
  await begin(`update automations set enabled = false where account_id = '${account_id}'`);
  expect(await counted(account_id)).toEqual([{ status: 'waiting', count: 1 }]);
  await end();
  expect(await counted(account_id)).toEqual([{ status: 'cancelled', count: 1 }]);
});

test('all runs of more than 30 days are deleted in one pass, however many, and no other', async () => {
  const account_id = randomUUID();
  const insert = (status: string, days: number, count: number) =>
    t.db.query(
      `insert into automation_runs (id, account_id, automation_id, start_key, admitted, status, trigger, node_ids, depth,
         second_run, graph, persons, window_ms, expires_at, created_at)
       select gen_random_uuid(), $1, $1, gen_random_uuid(), true, $2, 'trigger:manual', '{}', 0, 'parallel', '{}', '{}', 0,
         now(), now() - make_interval(days => $3) from generate_series(1, $4)`,
      [account_id, status, days, count],
    );
  await insert('succeeded', 31, 10_001);
  await insert('succeeded', 29, 1);
  await insert('waiting', 31, 1);
  expect(await sweepRuns(t.db)).toBe(10_001);
  expect(await counted(account_id)).toEqual([
    { status: 'succeeded', count: 1 },
    { status: 'waiting', count: 1 },
  ]);
});
