import { z } from 'zod';
import { RUN_STATUSES } from '../../domain/automation/automation-runs';
import type { Queryable } from '../../engines/postgres/port';
import type { PersonalTexts } from '../../privacy/subject-keys/port';
import { openInput } from '../../services/automation/runs/work';

const dateTime = z.string().meta({ format: 'date-time' });
const status = z.enum(RUN_STATUSES);
const times = { started_at: dateTime.nullable(), finished_at: dateTime.nullable() };

/** A run of an automation or a reward. */
export const AutomationRun = z
  .object({
    id: z.uuid(),
    automation_id: z.uuid().nullable().describe('Null of a reward'),
    reward_id: z.uuid().nullable(),
    status,
    trigger: z.string().describe('Type of the trigger'),
    event_id: z.uuid().nullable(),
    depth: z.int().describe('Number of runs that led to this one'),
    error: z.string().nullable(),
    ...times,
  })
  .meta({ id: 'AutomationRun' });
export type AutomationRun = z.output<typeof AutomationRun>;

export const AutomationStep = z
  .object({
    node_id: z.uuid(),
    type: z.string(),
    status,
    output: z.string().nullable(),
    input: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ graphql: 'JSON' })
      .describe('Config with the values of the run; null once a person of it was erased, and beyond 4 MiB of a run'),
    error: z.string().nullable(),
    ...times,
  })
  .meta({ id: 'AutomationStep' });
export type AutomationStep = z.output<typeof AutomationStep>;

const { started_at: _started, finished_at: _finished, ...dryMembers } = AutomationStep.shape;

/** A walk through an automation that does nothing. */
export const DryRun = z
  .object({
    status: status.describe('As a run would end where its actions succeed'),
    steps: z.array(z.object(dryMembers).meta({ id: 'AutomationDryStep' })),
  })
  .meta({ id: 'AutomationDryRun' });

export const AutomationRunWithSteps = z
  .object({ ...AutomationRun.shape, steps: z.array(AutomationStep) })
  .meta({ id: 'AutomationRunWithSteps' });

export const RUN_COLUMNS = Object.keys(AutomationRun.shape).join(', ');

/** Undefined for a run that is not of the account. */
export async function automationRunOf(
  db: Queryable,
  account_id: string,
  id: string,
): Promise<AutomationRun | undefined> {
  const [row] = await db.query<AutomationRun & Record<string, unknown>>(
    `select ${RUN_COLUMNS} from automation_runs where account_id = $1 and id = $2`,
    [account_id, id],
    'automation-run',
  );
  return row;
}

type StepRow = Omit<AutomationStep, 'input'> & { id: string; input: string | null; input_key_id: string | null };

/** Characters of the inputs of a run that are shown. */
const SHOWN_CHARACTERS = 4 * 1024 * 1024;

/** Steps of a run, in their order. */
export async function stepsOf(db: Queryable, texts: PersonalTexts, run_id: string): Promise<AutomationStep[]> {
  const rows = await db.query<StepRow & Record<string, unknown>>(
    `select id, node_id, type, status, output, input_key_id, error, started_at, finished_at,
       case when sum(length(input)) over (order by number) <= ${SHOWN_CHARACTERS} then input end as input
     from automation_steps where run_id = $1 order by number`,
    [run_id],
    'automation-steps',
  );
  return Promise.all(
    rows.map(async ({ id, input, input_key_id, ...step }) => {
      const text = input === null ? null : await openInput(texts, { id, input, input_key_id });
      return { ...step, input: text === null ? null : (JSON.parse(text) as Record<string, unknown>) };
    }),
  );
}
