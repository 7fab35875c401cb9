import { z } from 'zod';
import { cursor, cut, feature, get, notFound, permission, query } from '../../app/operation';
import { RUN_STATUSES } from '../../domain/automation/automation-runs';
import {
  AutomationRun,
  automationRunOf,
  AutomationRunWithSteps,
  RUN_COLUMNS,
  stepsOf,
} from '../../views/automation/automation-runs';
import { automationOf } from '../../views/automation/automations';

const Place = z.tuple([z.iso.datetime(), z.uuid()]);

export const automationRuns = query({
  name: 'automationRuns',
  summary: 'Runs of an automation of the last 30 days, newest first',
  rest: get('/v1/automations/{id}/runs'),
  pages: cursor(Place, 'AutomationRunPage'),
  guard: [feature('feature:automation'), permission('automations:read')],
  input: z.object({ id: z.uuid(), status: z.enum(RUN_STATUSES).nullish() }),
  output: AutomationRun,
  errors: { AUTOMATION_NOT_FOUND: notFound('Automation not found') },
  async run({ input: { id, status = null }, caller: { account_id }, page: { limit, after }, refuse }, { db }) {
    if ((await automationOf(db, account_id, id)) === undefined) throw refuse('AUTOMATION_NOT_FOUND');
    const rows = await db.query<AutomationRun & { created_at: string } & Record<string, unknown>>(
      `select ${RUN_COLUMNS}, created_at from automation_runs
       where account_id = $1 and automation_id = $2 and ($3::text is null or status = $3)
         and ($4::timestamptz is null or (created_at, id) < ($4, $5::uuid))
       order by created_at desc, id desc limit $6`,
      [account_id, id, status, after?.[0] ?? null, after?.[1] ?? null, limit + 1],
      'automation-runs',
    );
    return cut(rows, limit, (row): z.output<typeof Place> => [row.created_at, row.id]);
  },
});

export const automationRun = query({
  name: 'automationRun',
  summary: 'One run with its steps',
  rest: get('/v1/automations/runs/{run_id}'),
  guard: [feature('feature:automation'), permission('automations:read')],
  input: z.object({ run_id: z.uuid() }),
  output: AutomationRunWithSteps,
  errors: { RUN_NOT_FOUND: notFound('Run not found') },
  async run({ input: { run_id }, caller: { account_id }, refuse }, { db, texts }) {
    const found = await automationRunOf(db, account_id, run_id);
    if (found === undefined) throw refuse('RUN_NOT_FOUND');
    return { ...found, steps: await stepsOf(db, texts, run_id) };
  },
});
