import { randomUUID } from 'node:crypto';
import { graphProblem } from '../../domain/automation/automation-graphs';
import {
  type DueSchedule,
  scheduleStatements,
  startDueAutomations,
} from '../../services/automation/automations/automation-schedules';
import { type TestDatabase, testDatabase } from '../support/database';

let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t?.drop());

const node = (config: Record<string, unknown>) => ({ id: randomUUID(), type: 'trigger:schedule', config });
const at = (text: string) => Date.parse(text);

test('the config of a schedule is checked with its graph', () => {
  const valid = node({ cron: '0 18 * * *', time_zone: 'Europe/Berlin' });
  expect(graphProblem({ nodes: [valid, node({ interval_seconds: 60 })], edges: [] })).toBeNull();
  for (const config of [{}, { interval_seconds: 59 }, { cron: '0 18 * * *' }, { cron: '0 18 * *', time_zone: 'UTC' }]) {
    const wrong = node(config);
    expect(graphProblem({ nodes: [wrong], edges: [] })).toContain(`node ${wrong.id}: config`);
  }
});

test('due times that were missed together start one run, an unchanged schedule goes on, a dropped one ends', async () => {
  const [account_id, automation_id] = [randomUUID(), randomUUID()];
  const [cron, interval] = [node({ cron: '0 * * * *', time_zone: 'Europe/Berlin' }), node({ interval_seconds: 60 })];
  const set = async (nodes: ReturnType<typeof node>[], now: string) => {
    const statements = scheduleStatements({ automation_id, account_id, graph: { nodes, edges: [] } }, at(now));
    for (const [statement, values] of statements) await t.db.query(statement, values);
  };
  const started: DueSchedule[] = [];
  const start = (now: string) => startDueAutomations(t.db, async (_tx, due) => void started.push(...due), at(now));
  const next = async () =>
    (await t.db.query('select next_due_at from automation_schedules order by next_due_at')).map((row) =>
      new Date(row['next_due_at'] as string).toISOString().slice(11, 19),
    );
  await set([cron, interval], '2026-05-01T10:30:30Z');
  await set([cron, interval], '2026-05-01T10:31:00Z');
  expect(await next()).toEqual(['10:31:30', '11:00:00']);
  expect(await start('2026-05-01T10:31:29Z')).toBe(0);
  expect(await start('2026-05-01T13:10:00Z')).toBe(2);
  expect(started).toMatchObject([
    { automation_id, account_id, node_id: interval.id },
    { automation_id, account_id, node_id: cron.id },
  ]);
  expect(await next()).toEqual(['13:10:30', '14:00:00']);
  const both = [start('2026-05-01T14:00:00Z'), start('2026-05-01T14:00:00Z')];
  expect((await Promise.all(both)).reduce((sum, count) => sum + count)).toBe(2);
  await set([cron], '2026-05-01T14:00:01Z');
  expect(await next()).toEqual(['15:00:00']);
});

test('all schedules that are due start together, however many they are', async () => {
  await t.db.query(
    `insert into automation_schedules (automation_id, node_id, account_id, schedule, next_due_at)
     select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '{"interval_seconds":3600}', '2026-06-01T10:00:00Z'
     from generate_series(1, 501)`,
  );
  const automation_id = randomUUID();
  await t.db.query(
    `insert into automation_schedules (automation_id, node_id, account_id, schedule, next_due_at)
     select $1, gen_random_uuid(), gen_random_uuid(), '{"interval_seconds":3600}', due::timestamptz
     from unnest(array['2026-06-01T09:00:00Z', '2026-06-01T10:00:01Z']) due`,
    [automation_id],
  );
  const started: DueSchedule[] = [];
  const together: number[] = [];
  const take = async (_tx: unknown, due: readonly DueSchedule[]) => {
    started.push(...due);
    together.push(due.filter((one) => one.automation_id === automation_id).length);
  };
  expect(await startDueAutomations(t.db, take, at('2026-06-01T10:00:01Z'))).toBeGreaterThan(500);
  expect(new Set(started.map(({ node_id }) => node_id)).size).toBe(started.length);
  expect(together.filter((count) => count > 0)).toEqual([2]);
});
