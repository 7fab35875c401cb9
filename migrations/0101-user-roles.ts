import type { Migration } from './index';

/** Roles of people regardless of account. A person without a row holds the default role. */
export const userRoles: Migration = {
  name: '0101-user-roles',
  async up(knex) {
    await knex.raw(`
      create table user_roles (
        id          uuid primary key,
        slug        text not null,
        name        text not null,
        description text,
        permissions text[] not null,
        is_system   boolean not null,
        is_default  boolean not null,
        created_at  timestamptz not null,
        updated_at  timestamptz not null
      );
      create table user_role_holders (
        user_id  uuid primary key,
        role_id  uuid not null,
        given_at timestamptz not null
      );
      create index user_role_holders_role on user_role_holders (role_id, given_at desc, user_id);
    `);
  },
};
