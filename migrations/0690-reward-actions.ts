import type { Migration } from './index';

/** Actions of rewards, and the rewards of a redemption. */
export const rewardActions: Migration = {
  name: '0690-reward-actions',
  up: (knex) =>
    knex.raw(`
      alter table rewards add column action json not null default '{}';
      create index rewards_platform_reward on rewards (account_id, platform_reward_id)
        where platform_reward_id is not null`),
};
