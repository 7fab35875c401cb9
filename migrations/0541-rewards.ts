import type { Migration } from './index';

/** The read model of rewards. */
export const rewards: Migration = {
  name: '0541-rewards',
  up: (knex) =>
    knex.raw(`
      create table rewards (
        id                 uuid primary key,
        account_id         uuid not null,
        platform           text not null,
        platform_reward_id text,
        title              text not null,
        cost               integer,
        enabled            boolean not null,
        created_at         timestamptz not null,
        updated_at         timestamptz not null
      );
      create index rewards_account on rewards (account_id, created_at, id)`),
};
