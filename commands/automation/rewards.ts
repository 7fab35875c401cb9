import { z } from 'zod';
import {
  command,
  conflict,
  del,
  feature,
  invalid,
  notFound,
  patch,
  permission,
  post,
  type Refuse,
} from '../../app/operation';
import { NODE_TYPES } from '../../domain/automation/node-types';
import { type RewardAction, rewardGraph } from '../../domain/automation/nodes/reward-actions';
import { sendWebhook } from '../../domain/automation/nodes/webhooks';
import { MAX_REWARDS, NO_ACTION, type Rewards, rewards, rewardsStream } from '../../domain/automation/rewards';
import { PLATFORMS } from '../../domain/common/vendors';
import { graphProblemOf } from '../../services/automation/automations/graph-problems';
import { Reward, shownReward } from '../../views/automation/rewards';

const AUTOMATION = feature('feature:automation');
const REWARD_NOT_FOUND = { REWARD_NOT_FOUND: notFound('Reward not found') };
const MAX_COST = 2 ** 31 - 1;

const title = z
  .string()
  .trim()
  .min(1, 'title must be 1 to 200 characters')
  .max(200, 'title must be 1 to 200 characters');
const cost = z.int().min(0).max(MAX_COST);
const ActionInput = z.union([
  z.strictObject({}),
  z.strictObject({
    type: z.string().max(100),
    config: z.record(z.string(), z.unknown()),
    x: z.number().nullish().describe('Dropped'),
    y: z.number().nullish().describe('Dropped'),
  }),
]);
const action = z
  .record(z.string(), z.unknown())
  .refine((value) => ActionInput.safeParse(value).success, 'action must be {}, or an object with type and config')
  .nullish()
  .describe('`{}`, or one action `{type, config}` as in graphs of automations')
  .meta({ graphql: 'JSON' });
type Action = z.output<typeof action>;
const BAD_ACTION = { BAD_ACTION: invalid('{problem}') };

/** JSON text of the action of an input; undefined of an absent one. */
async function actionText(
  services: Parameters<typeof graphProblemOf>[0],
  account_id: string,
  given: Action,
  refuse: Refuse<typeof BAD_ACTION>,
): Promise<string | undefined> {
  if (given === null || given === undefined) return undefined;
  if (Object.keys(given).length === 0) return NO_ACTION;
  const { type, config } = given as unknown as RewardAction;
  const declared = NODE_TYPES.get(type);
  if (declared !== undefined && declared.family !== 'action')
    throw refuse('BAD_ACTION', { problem: `action: ${type} is no action` });
  if (type === sendWebhook.type)
    throw refuse('BAD_ACTION', { problem: `action: ${type} needs the secret of an automation; a reward has none` });
  const problem = await graphProblemOf(services, account_id, rewardGraph('action', 'trigger', { type, config }));
  if (problem !== null) throw refuse('BAD_ACTION', { problem });
  return JSON.stringify({ type, config });
}

const shown = (state: Rewards, account_id: string, id: string): Reward =>
  shownReward({ id, account_id, ...state.get(id)! });

/** Source: spec extra-facts §22. */
export const createReward = command({
  name: 'createReward',
  summary: 'Makes a reward of the account',
  rest: post('/v1/rewards', { status: 201, location: ({ id }: Reward) => `/v1/rewards/${id}` }),
  graphql: { argument: 'input' },
  guard: [AUTOMATION, permission('rewards:create')],
  input: z
    .object({
      platform: z.enum(PLATFORMS),
      platform_reward_id: z.string().trim().min(1).max(200).nullish().describe("The platform's id of the reward"),
      title,
      cost: cost.nullish(),
      action,
    })
    .meta({ id: 'CreateRewardInput' }),
  output: Reward,
  errors: { ...BAD_ACTION, TOO_MANY_REWARDS: conflict(`An account has at most ${MAX_REWARDS} rewards`) },
  async run({ input, caller: { account_id }, act, newId, refuse }, services) {
    const id = newId('reward');
    const made = { platform: input.platform, platform_reward_id: input.platform_reward_id ?? null, title: input.title };
    const text = (await actionText(services, account_id, input.action, refuse)) ?? NO_ACTION;
    const { events } = await act(rewards, rewardsStream(account_id), {
      type: 'reward:create',
      ...{ account_id, reward_id: id, ...made, cost: input.cost ?? null, enabled: true, action: text },
    });
    return shown(events.reduce(rewards.evolve, rewards.initial), account_id, id);
  },
});

export const updateReward = command({
  name: 'updateReward',
  summary: 'Changes a reward of the account; absent members stay',
  rest: patch('/v1/rewards/{id}'),
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [AUTOMATION, permission('rewards:edit')],
  input: z
    .object({
      id: z.uuid(),
      title: title.nullish(),
      cost: cost.nullish().describe('Null: none'),
      enabled: z.boolean().nullish(),
      action,
    })
    .meta({ id: 'UpdateRewardInput' }),
  output: Reward,
  errors: { ...REWARD_NOT_FOUND, ...BAD_ACTION },
  async run({ input: { id, ...input }, caller: { account_id }, act, refuse }, services) {
    const changes = {
      ...{ title: input.title ?? undefined, cost: input.cost, enabled: input.enabled ?? undefined },
      action: await actionText(services, account_id, input.action, refuse),
    };
    const update = { type: 'reward:update', account_id, reward_id: id, changes } as const;
    const { state } = await act(rewards, rewardsStream(account_id), update);
    // A repetition of a change of a reward that is deleted by now.
    if (!state.has(id)) throw refuse('REWARD_NOT_FOUND');
    return shown(state, account_id, id);
  },
});

export const deleteReward = command({
  name: 'deleteReward',
  summary: 'Deletes a reward of the account',
  rest: del('/v1/rewards/{id}'),
  guard: [AUTOMATION, permission('rewards:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteRewardResult' }),
  errors: REWARD_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, act }) {
    await act(rewards, rewardsStream(account_id), { type: 'reward:delete', account_id, reward_id: id });
    return { success: true };
  },
});
