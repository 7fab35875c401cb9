import type { Migration } from './index';

/** Roles of operators. A role without a list of permissions holds all. */
export const adminRoles: Migration = {
  name: '0100-admin-roles',
  async up(knex) {
    await knex.raw(`
      create table admin_roles (
        id          uuid primary key,
        -- What user_admin_roles calls it: the slug of a system role, the id of any other.
        key         text not null unique,
        name        text not null,
        description text,
        is_system   boolean not null,
        permissions text[],
        created_at  timestamptz not null,
        updated_at  timestamptz not null
      );
      create index user_admin_roles_role on user_admin_roles (role);
      -- Personal, and so beside the name: no event carries it in clear.
      alter table profiles add column email text;
    `);
  },
};
