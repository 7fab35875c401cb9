import { randomUUID } from 'node:crypto';
import { RUNS_A_MINUTE, RUNS_AT_ONCE } from '../../domain/automation/automation-runs';
import { admit } from '../../services/automation/runs/admission';
import { reportDropped } from '../../services/automation/runs/dropped';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t?.drop());

const [trigger, pause] = [randomUUID(), randomUUID()];
const graph = {
  nodes: [
    { id: trigger, type: 'trigger:manual', config: {} },
    { id: pause, type: 'action:wait', config: { seconds: 60 } },
  ],
  edges: [{ from: trigger, to: pause, output: 'next' }],
};

test('an account has 20 runs at once, starts 600 a minute, and is told of the dropped ones once', async () => {
  const [account_id, automation_id] = [randomUUID(), randomUUID()];
  const begin = (before = 'select 1 as one') => {
    const run_id = randomUUID();
    const start = {
      ...{ account_id, run_id, start_key: run_id, trigger: 'trigger:manual', node_ids: [trigger], event_id: null },
      ...{ depth: 0, at_ms: Date.now(), window_ms: 60_000, permissions: null, persons: [], subject: null },
    };
    const asking = {
      start,
      automation_id,
      reward_id: null,
      second_run: 'parallel',
      graph,
      cause: { key_id: null, sealed: null },
    };
    return t.db.transaction(async (tx) => {
      await tx.query(before);
      await admit(tx, asking, { steps: [], messages: [] });
    });
  };
  for (let n = 0; n < RUNS_AT_ONCE + 2; n += 1) await begin();
  const counted = await t.db.query('select status, count(*)::int as count from automation_runs group by 1 order by 1');
  expect(counted).toEqual([
    { status: 'pending', count: 2 },
    { status: 'waiting', count: RUNS_AT_ONCE },
  ]);
  await begin(`update automation_accounts set minute = date_trunc('minute', now()), started = ${RUNS_A_MINUTE}`);
  const sent: unknown[] = [];
  const live = { broadcast: async (_channel: string, message: unknown) => void sent.push(message) };
  const dropped = await reportDropped(t.db, live);
  expect([dropped, await reportDropped(t.db, live)]).toEqual([1, 0]);
  expect(sent).toMatchObject([{ type: 'automation', data: { type: 'run:dropped', count: 1 } }]);
});
