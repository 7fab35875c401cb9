import { z } from 'zod';
import { PLATFORMS } from '../../domain/common/vendors';

const dateTime = z.string().meta({ format: 'date-time' });

const stored = {
  id: z.uuid(),
  account_id: z.uuid(),
  platform: z.enum(PLATFORMS),
  platform_reward_id: z.string().nullable().describe("The platform's id of the reward"),
  title: z.string(),
  cost: z.int().nullable(),
  enabled: z.boolean(),
};

/** Row of a reward. */
export const RewardRow = z.object({ ...stored, action: z.string(), created_at: dateTime, updated_at: dateTime });

/** A reward of channel points. Source: spec extra-facts §22. */
export const Reward = z
  .object({
    ...stored,
    action: z
      .record(z.string(), z.unknown())
      .describe('`{}`, or the action `{type, config}` of its redemptions')
      .meta({ graphql: 'JSON' }),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'Reward' });
export type Reward = z.output<typeof Reward>;

export const shownReward = ({ action, ...row }: z.output<typeof RewardRow>): Reward => ({
  ...row,
  action: JSON.parse(action) as Record<string, unknown>,
});
