import type { Migration } from './index';

/**
 * Plans, the accounts on a plan other than the free one, and operators' settings for one account or user. All rows
 * derive from domain events.
 */
export const plans: Migration = {
  name: '0105-plans',
  up: (knex) =>
    knex.raw(`
      create table plans (
        id                      uuid primary key,
        slug                    text not null,
        name                    text not null,
        description             text,
        price_monthly           bigint not null,
        price_yearly            bigint not null,
        currency                text not null,
        is_public               boolean not null,
        sort_order              bigint not null,
        limits                  jsonb not null,
        stripe_product_id       text,
        stripe_monthly_price_id text,
        stripe_yearly_price_id  text,
        created_at              timestamptz not null
      );
      create index plans_slug on plans (slug);
      create table plan_features (
        plan_id uuid not null,
        flag    text not null,
        enabled boolean not null,
        primary key (plan_id, flag)
      );
      create table account_plans (
        account_id uuid primary key,
        plan_id    uuid not null,
        changed_at timestamptz not null
      );
      create index account_plans_plan on account_plans (plan_id);
      create table account_limit_overrides (
        account_id uuid not null,
        name       text not null,
        value      bigint not null,
        set_at     timestamptz not null,
        primary key (account_id, name)
      );
      create table user_overrides (
        user_id          uuid primary key,
        account_creation text not null default 'default',
        max_accounts     bigint
      );
      create index if not exists accounts_owner on accounts (owner_id);
    `),
};
