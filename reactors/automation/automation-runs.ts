import { z } from 'zod';
import { job, type JobTools } from '../../app/job';
import { reactor } from '../../app/reactor';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { AUTOMATION_EVENTS, automationOwner } from '../../domain/automation/automations';
import { rewardOwner } from '../../domain/automation/rewards';
import { END_RUNS, PERSONAL_START, RunStart, START_AUTOMATION } from '../../domain/automation/automation-runs';
import { type Effect, type EffectTools, OutcomeUnknown } from '../../kernel/job';
import type { Queryable } from '../../engines/postgres/port';
import { writeOutbox } from '../../projections/runtime/outbox/outbox';
import { beforeCall } from '../../services/automation/called';
import type { Outcome, StepWork } from '../../services/automation/nodes/executor';
import { EXECUTORS } from '../../services/automation/nodes/executors';
import { admit, refuseRun } from '../../services/automation/runs/admission';
import { startable } from '../../services/automation/runs/startable';
import { endRuns } from '../../services/automation/runs/ending';
import {
  cancelRun,
  endStep,
  type FollowUps,
  type NextStep,
  type StepEnd,
} from '../../services/automation/runs/progress';
import {
  isRunWanted,
  openCause,
  openStep,
  sealCause,
  sealInput,
  templatesOf,
} from '../../services/automation/runs/work';

/** Pauses between tries of a step: its calls expire soon. */
const PAUSES = { first_ms: 1_000, most_ms: 10_000 };
const TRIES = 1_000;

const StepPayload = {
  account_id: z.uuid(),
  owner: z.string(),
  lane: z.string(),
  run_id: z.uuid(),
  step_id: z.uuid(),
};
type StepPayload = z.output<z.ZodObject<typeof StepPayload>>;

/** Effect that changes runs; its jobs and messages are part of the transaction. */
export const changing =
  (change: (tx: Queryable, then: FollowUps) => Promise<void>): Effect =>
  async (tx, tools) => {
    const then: FollowUps = { steps: [], messages: [] };
    await change(tx, then);
    await enqueueSteps(tools, then.steps);
    await writeOutbox(tx, then.messages);
  };

async function enqueueSteps({ enqueue }: EffectTools, steps: readonly NextStep[]): Promise<void> {
  for (const { run, run_id, step_id, node, run_at } of steps) {
    const { account_id, automation_id, reward_id } = run;
    const platforms = Array.isArray(node.config.platforms) ? node.config.platforms.join() : '';
    const payload = {
      ...{ account_id, run_id, step_id, lane: `${account_id}:${node.type}:${platforms}` },
      owner: automation_id === null ? rewardOwner(reward_id!) : automationOwner(automation_id),
    };
    const declared = EXECUTORS.get(node.type)?.calls === true ? callStep : runStep;
    await enqueue(declared, { key: step_id, payload, ...(run_at !== undefined && { run_at }) });
  }
}

const LOST: Pick<StepEnd, 'input' | 'input_key_id' | 'output'> = { output: null, input: null, input_key_id: null };

/** Carries out a step, and stores its end with the steps behind it. */
async function carryOut(payload: StepPayload, tools: JobTools): Promise<Effect | void> {
  const { account_id, run_id, step_id } = payload;
  const { db, texts } = tools;
  const started_at = new Date().toISOString();
  const open = await openStep(db, payload);
  if (open === undefined) return;
  const { run, step } = open;
  const cause = await openCause(texts, run);
  if (cause === null || !(await isRunWanted(db, run)))
    return changing((tx, then) => cancelRun(tx, run_id, account_id, then));
  const ending = (end: Omit<StepEnd, 'started_at'>): Effect =>
    changing((tx, then) => endStep(tx, payload, { ...end, started_at }, then));
  if (step.expires_ms <= Date.now()) return ending({ ...LOST, status: 'expired', error: null });
  const node = run.graph.nodes.find(({ id }) => id === step.node_id);
  const executor = EXECUTORS.get(step.type);
  if (node === undefined || executor === undefined)
    return ending({ ...LOST, status: 'failed', error: 'not_available' });
  const { expand, inputOf, unknownNames } = await templatesOf(tools, run, cause, node.config);
  const work: StepWork = {
    ...{ account_id, automation_id: run.automation_id, run_id, step_id, node_id: node.id, depth: run.depth },
    ...{ persons: run.persons, permissions: run.permissions },
    ...{ event_id: run.event_id, cause, config: node.config, expand, expires_ms: step.expires_ms },
    window_ms: run.window_ms,
  };
  const input = inputOf(() => executor.input(work));
  if (input === null) return ending({ ...LOST, status: 'failed', error: 'input_too_large' });
  const unknown_names = unknownNames();
  const noted = unknown_names.length === 0 ? input : { ...input, unknown_names };
  const sealed = await sealInput(texts, { account_id, subject: cause.subject, step_id, input: noted });
  const result = await outcomeOf(() => executor.run(work, input, tools), executor.calls === true);
  if (result.status !== 'succeeded') return ending({ ...result, output: null, ...sealed });
  const { output, starts } = result;
  return async (tx, effect_tools) => {
    if (starts !== undefined)
      await effect_tools.enqueue(startAutomationRun, { key: starts.start_key, payload: starts });
    const taken = typeof output === 'string' ? output : await output(tx);
    const end =
      typeof taken === 'string'
        ? ({ status: 'succeeded', output: taken, error: null } as const)
        : { ...taken, output: null };
    await ending({ ...end, ...sealed })(tx, effect_tools);
  };
}

/** A call that may have been made ends the step as unknown; a failure of ours before it is tried again. */
async function outcomeOf(run: () => Promise<Outcome>, calls: boolean): Promise<Outcome> {
  try {
    return await run();
  } catch (error) {
    if (calls && error instanceof OutcomeUnknown) return { status: 'unknown', error: 'no_answer' };
    throw error;
  }
}

const common = {
  payload: StepPayload,
  retries: TRIES,
  pauses: PAUSES,
  timeout_ms: 30_000,
  owner: ({ owner }: StepPayload) => owner,
};

/** Carries out a step without calls to others. */
export const runStep = job({
  ...common,
  name: 'run-automation-step',
  after_unknown: 'repeat',
  lane: ({ account_id }) => `${account_id}:steps`,
  run: (payload, _attempt, tools) => carryOut(payload, tools),
});

/** Carries out a step whose call of unknown outcome is not repeated. */
export const callStep = job({
  ...common,
  name: 'call-automation-step',
  after_unknown: 'end',
  lane: ({ lane }) => lane,
  onUnknown: (payload) =>
    changing((tx, then) =>
      endStep(
        tx,
        payload,
        { ...LOST, status: 'unknown', error: 'no_answer', started_at: new Date().toISOString() },
        then,
      ),
    ),
  run: (payload, _attempt, tools) => beforeCall(() => carryOut(payload, tools)),
});

/** Pauses between tries of a start. */
export const START_TRIES = { retries: 20, after_unknown: 'repeat', pauses: PAUSES } as const;

/** Starts a run for a cause, by the bounds of its account. */
export const startAutomationRun = job({
  name: START_AUTOMATION,
  payload: RunStart,
  personal: PERSONAL_START,
  ...START_TRIES,
  lane: ({ account_id }) => `${account_id}:automations`,
  owner: ({ automation_id }) => automationOwner(automation_id),
  async run(start, _attempt, { db, texts }) {
    const found = await startable(db, start);
    if (found === undefined) return changing((tx, then) => refuseRun(tx, start.run_id, 'automation_disabled', then));
    if (start.cause === null && start.persons.length > 0) return;
    const cause = await sealCause(texts, start);
    const { automation_id } = start;
    const asking = { start: { ...start, node_ids: found.node_ids }, automation_id, reward_id: null, cause };
    return changing((tx, then) => admit(tx, { ...asking, ...found }, then));
  },
});

/** Ends the runs of an automation, or of an account, that began before a time; `infinity`: all. */
export const endAutomationRuns = job({
  name: END_RUNS,
  payload: { account_id: z.uuid(), automation_id: z.uuid().nullable(), before: z.string() },
  after_unknown: 'repeat',
  run: async ({ account_id, automation_id, before }) =>
    changing((tx, then) => endRuns(tx, { account_id, automation_id, reward_id: null, before }, then)),
});

/** Runs end with their automation, or with its account. */
export const automationEnds = reactor({
  name: 'automation-ends',
  from: 'beginning',
  events: [AUTOMATION_EVENTS, ACCOUNT_EVENTS],
  on: {
    'automation:updated': ({ automation_id, account_id, enabled, updated_at }, { enqueue }) => {
      // Its jobs stay, because some may belong to runs that began after it was enabled again.
      if (enabled) return;
      const payload = { account_id, automation_id, before: updated_at };
      enqueue(endAutomationRuns, { key: `${automation_id}:${updated_at}`, payload });
    },
    'automation:deleted': ({ automation_id, account_id, deleted_at }, { cancel, enqueue, keep }) => {
      cancel(automationOwner(automation_id));
      const payload = { account_id, automation_id, before: 'infinity' };
      enqueue(endAutomationRuns, { key: `${automation_id}:${deleted_at}`, payload });
      keep('delete from automation_cooldowns where automation_id = $1', [automation_id]);
    },
    // Each try of a step finds no automation.
    'account:dissolved': ({ account_id }, { keep }) => {
      keep('delete from automation_runs where account_id = $1', [account_id]);
      keep('delete from automation_cooldowns where account_id = $1', [account_id]);
      keep('delete from automation_accounts where account_id = $1', [account_id]);
    },
  },
});
