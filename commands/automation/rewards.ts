import { z } from 'zod';
import { command, conflict, del, feature, notFound, patch, permission, post } from '../../app/operation';
import { MAX_REWARDS, type Rewards, rewards, rewardsStream } from '../../domain/automation/rewards';
import { PLATFORMS } from '../../domain/common/vendors';
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
const action = z
  .record(z.string(), z.unknown())
  .refine((value) => Object.keys(value).length === 0, 'action must be {}: there are no automations yet')
  .nullish()
  .describe('`{}`')
  .meta({ graphql: 'JSON' });

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
  errors: { TOO_MANY_REWARDS: conflict(`An account has at most ${MAX_REWARDS} rewards`) },
  async run({ input, caller: { account_id }, act, newId }) {
    const id = newId('reward');
    const made = { platform: input.platform, platform_reward_id: input.platform_reward_id ?? null, title: input.title };
    const { events } = await act(rewards, rewardsStream(account_id), {
      type: 'reward:create',
      ...{ account_id, reward_id: id, ...made, cost: input.cost ?? null, enabled: true },
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
  errors: REWARD_NOT_FOUND,
  async run({ input: { id, ...input }, caller: { account_id }, act, refuse }) {
    const changes = { title: input.title ?? undefined, cost: input.cost, enabled: input.enabled ?? undefined };
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
