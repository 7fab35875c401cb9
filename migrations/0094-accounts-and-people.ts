import type { Migration } from './index';

/**
 * Profile of an account, roles with a description and a colour, invites, and the logins that members act with. A null
 * name means the owner's own name, which no event holds.
 */
export const accountsAndPeople: Migration = {
  name: '0094-accounts-and-people',
  async up(knex) {
    await knex.raw(`
      alter table accounts alter column name drop not null;
      alter table accounts
        add column description text,
        add column plan text not null default 'free',
        add column primary_login_connection_id uuid,
        add column updated_at timestamptz;
      create index if not exists accounts_owner on accounts (owner_id);
      create index accounts_primary_login on accounts (primary_login_connection_id)
        where primary_login_connection_id is not null;
      alter table account_roles
        add column description text,
        add column color text not null default '#6b7280',
        add column is_default boolean not null default true,
        add column created_at timestamptz,
        add column updated_at timestamptz;
      create index account_members_joined on account_members (account_id, joined_at, user_id);
      create table account_invites (
        id          uuid primary key,
        account_id  uuid not null,
        code_hash   text not null unique,
        code_prefix text not null,
        role_id     uuid not null,
        made_by     uuid,
        max_uses    integer not null,
        uses        integer not null default 0,
        expires_at  timestamptz,
        created_at  timestamptz not null
      );
      create index account_invites_account on account_invites (account_id, created_at desc, id desc);
      create table account_login_assignments (
        account_id          uuid not null,
        user_id             uuid not null,
        provider            text not null,
        id                  uuid not null,
        login_connection_id uuid not null,
        assigned_at         timestamptz not null,
        primary key (account_id, user_id, provider)
      );
      create index account_login_assignments_login on account_login_assignments (login_connection_id);
    `);
  },
};
