import { z } from 'zod';
import { job } from '../../app/job';
import { reactor } from '../../app/reactor';
import { PERSONAL_START, RewardStart, START_REWARD } from '../../domain/automation/automation-runs';
import { REWARD_EVENTS, rewardOwner } from '../../domain/automation/rewards';
import { admit } from '../../services/automation/runs/admission';
import { endRuns } from '../../services/automation/runs/ending';
import { startableReward } from '../../services/automation/runs/reward-starts';
import { hasAutomations, sealCause } from '../../services/automation/runs/work';
import { changing, START_TRIES } from './automation-runs';

/** Starts the action of a reward, by the bounds of its account. */
export const startRewardRun = job({
  name: START_REWARD,
  payload: RewardStart,
  personal: PERSONAL_START,
  ...START_TRIES,
  lane: ({ account_id }) => `${account_id}:automations`,
  owner: ({ reward_id }) => rewardOwner(reward_id),
  async run(start, _attempt, { db, texts }) {
    const { account_id, reward_id } = start;
    const graph = await startableReward(db, account_id, reward_id);
    if (graph === undefined || !(await hasAutomations(db, account_id))) return;
    if (start.cause === null && start.persons.length > 0) return;
    const cause = await sealCause(texts, start);
    const at = { ...start, node_ids: [graph.nodes[0]!.id] };
    const asking = { start: at, automation_id: null, reward_id, second_run: 'parallel', graph, cause };
    return changing((tx, then) => admit(tx, asking, then));
  },
});

/** Ends the runs of a reward that began before a time. */
export const endRewardRuns = job({
  name: 'end-reward-runs',
  payload: { account_id: z.uuid(), reward_id: z.uuid(), before: z.string() },
  after_unknown: 'repeat',
  run: async ({ account_id, reward_id, before }) =>
    changing((tx, then) => endRuns(tx, { account_id, automation_id: null, reward_id, before }, then)),
});

/** Runs end with their reward. */
export const rewardEnds = reactor({
  name: 'reward-ends',
  from: 'beginning',
  events: [REWARD_EVENTS],
  on: {
    'reward:created': () => undefined,
    'reward:updated': ({ reward_id, account_id, enabled, updated_at: before }, { enqueue }) => {
      // Its jobs stay, because some may belong to runs that began after it was enabled again.
      if (enabled) return;
      enqueue(endRewardRuns, { key: `${reward_id}:${before}`, payload: { account_id, reward_id, before } });
    },
    'reward:deleted': ({ reward_id, account_id, deleted_at }, { cancel, enqueue }) => {
      cancel(rewardOwner(reward_id));
      const payload = { account_id, reward_id, before: 'infinity' };
      enqueue(endRewardRuns, { key: `${reward_id}:${deleted_at}`, payload });
    },
  },
});
