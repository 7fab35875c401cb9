import { z } from 'zod';
import { feature, get, notFound, numbered, permission, query, rowsOf } from '../../app/operation';
import { Reward, RewardRow, shownReward } from '../../views/automation/rewards';

const AUTOMATION = feature('feature:automation');

export const rewards = query({
  name: 'rewards',
  summary: "The account's rewards, oldest first",
  rest: get('/v1/rewards'),
  pages: numbered('PaginatedRewardResult'),
  guard: [AUTOMATION, permission('rewards:read')],
  input: z.object({}),
  output: Reward,
  async run({ caller, page }, { db }) {
    const of = { from: 'rewards where account_id = $1', order: 'created_at, id', values: [caller.account_id] };
    const { items, total } = await rowsOf(db, page, RewardRow, of);
    return { items: items.map(shownReward), total };
  },
});

export const reward = query({
  name: 'reward',
  summary: 'One reward of the account',
  rest: get('/v1/rewards/{id}'),
  guard: [AUTOMATION, permission('rewards:read')],
  input: z.object({ id: z.uuid() }),
  output: Reward,
  errors: { REWARD_NOT_FOUND: notFound('Reward not found') },
  async run({ input: { id }, caller, refuse }, { db }) {
    const [row] = await db.query<z.output<typeof RewardRow> & Record<string, unknown>>(
      `select ${Object.keys(RewardRow.shape).join(', ')} from rewards where account_id = $1 and id = $2`,
      [caller.account_id, id],
      'reward',
    );
    if (row === undefined) throw refuse('REWARD_NOT_FOUND');
    return shownReward(row);
  },
});
