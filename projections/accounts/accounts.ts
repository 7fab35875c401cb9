import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { Sql, sql } from '../../kernel/sql';
import { all, eventProjection, noEffect, lastPer } from '../runtime/drive/handlers';

interface Membership {
  account_id: string;
  user_id: string;
}
const ofMember = ({ account_id, user_id }: Membership) => ({ account_id, user_id });
const ofAccount = ({ account_id }: Pick<Membership, 'account_id'>) => ({ account_id });

const TABLES = [
  'accounts',
  'account_roles',
  'account_members',
  'account_feature_overrides',
  'account_invites',
  'account_login_assignments',
] as const;

/** Carries the provider alone, because anybody may subscribe. Source: spec rulings, "channels without a row". */
const loginAssigned = ({ account_id, provider }: { account_id: string; provider: string }) => [
  {
    channel: `login-assignments:${account_id}`,
    event_type: 'login-assignment:updated',
    data: JSON.stringify({ provider }),
  },
];

/**
 * Accounts, their roles, members, invites, logins and feature overrides; a dissolved account leaves no row. Changes of
 * a member's permissions or of an account's features revoke what nodes have cached of them.
 */
export const accounts = eventProjection({
  name: 'accounts',
  version: 4,
  tables: TABLES,
  rights: true,
  events: [ACCOUNT_EVENTS],
  on: {
    'account:created': all(sql`
      with role as (
        select distinct on (id) * from (
          select row_number() over () as place, (role ->> 'role_id')::uuid as id, account_id, role ->> 'slug' as slug,
                 role ->> 'name' as name, role ->> 'description' as description, role ->> 'color' as color, position,
                 (role ->> 'is_system')::boolean as is_system, (role ->> 'is_default')::boolean as is_default, created_at,
                 nullif(role -> 'permissions', 'null') as permissions
          from e, jsonb_array_elements(roles) with ordinality as r (role, position)
        ) every order by id, place
      ), listed as (
        insert into account_roles
          (id, account_id, slug, name, description, color, position, is_system, is_default, created_at, permissions)
        select id, account_id, slug, name, description, color, position, is_system, is_default, created_at,
               array(select jsonb_array_elements_text(permissions))
        from role where permissions is not null on conflict (id) do nothing
      ), whole as (
        insert into account_roles
          (id, account_id, slug, name, description, color, position, is_system, is_default, created_at)
        select id, account_id, slug, name, description, color, position, is_system, is_default, created_at
        from role where permissions is null on conflict (id) do nothing
      ), members as (
        insert into account_members (account_id, user_id, id, role_id, joined_at)
        select account_id, owner_id, membership_id, (roles -> 0 ->> 'role_id')::uuid, created_at from e
        on conflict (account_id, user_id) do nothing
      )
      insert into accounts (id, name, description, plan, owner_id, created_at)
      select account_id, name, description, plan, owner_id, created_at from e on conflict (id) do nothing`),
    'account:details_changed': lastPer(
      ['account_id'],
      sql`
      update accounts a set name = e.name, description = e.description, updated_at = e.changed_at
      from e where a.id = e.account_id`,
    ),
    'account:dissolved': all(
      sql`delete from accounts a using e where a.id = e.account_id`,
      ...TABLES.filter((table) => table !== 'accounts').map(
        (table) => sql`delete from ${new Sql(table)} t using e where t.account_id = e.account_id`,
      ),
    ),
    'account:member_added': lastPer(
      ['account_id', 'user_id'],
      sql`
      insert into account_members (account_id, user_id, id, role_id, joined_at)
      select account_id, user_id, membership_id, role_id, added_at from e
      on conflict (account_id, user_id) do update set
        id = excluded.id, role_id = excluded.role_id, joined_at = excluded.joined_at`,
    ),
    'account:member_role_changed': lastPer(
      ['account_id', 'user_id'],
      sql`
      update account_members m set role_id = e.role_id from e
      where m.account_id = e.account_id and m.user_id = e.user_id`,
    ),
    'account:member_removed': all(sql`
      delete from account_members m using e where m.account_id = e.account_id and m.user_id = e.user_id`),
    'account:owner_replaced': sql`
      with roles as (
        update account_members m set role_id = coalesce(r.id, m.role_id)
        from e left join account_roles r on r.account_id = e.account_id and r.slug = 'owner' and r.is_system
        where m.account_id = e.account_id and m.user_id = e.owner_id
      ), former as (
        update account_members m set role_id = e.former_role_id from e
        where m.account_id = e.account_id and m.user_id = e.former_owner_id and e.former_role_id is not null
      )
      update accounts a set owner_id = e.owner_id, updated_at = e.replaced_at from e where a.id = e.account_id`,
    'account:feature_override_set': lastPer(
      ['account_id', 'flag'],
      sql`
      delete from account_feature_overrides o using e
      where o.account_id = e.account_id and o.flag = e.flag and e.enabled is null`,
      sql`
      insert into account_feature_overrides (account_id, flag, enabled, set_at)
      select account_id, flag, enabled, set_at from e where enabled is not null
      on conflict (account_id, flag) do update set enabled = excluded.enabled, set_at = excluded.set_at`,
    ),
    // Stored with the plans (projections/billing/plans.ts).
    'account:plan_changed': noEffect,
    'account:limit_override_set': noEffect,
    'account:role_created': all(sql`
      insert into account_roles
        (id, account_id, slug, name, description, color, position, is_system, is_default, permissions, created_at)
      select role_id, account_id, slug, name, description, color, position, false, false, permissions, created_at
      from e on conflict (id) do nothing`),
    'account:role_changed': lastPer(
      ['role_id'],
      sql`
      update account_roles r set name = e.name, description = e.description, color = e.color,
        permissions = e.permissions, updated_at = e.changed_at
      from e where r.id = e.role_id`,
    ),
    'account:role_deleted': all(sql`delete from account_roles r using e where r.id = e.role_id`),
    'account:invite_created': all(sql`
      insert into account_invites
        (id, account_id, code_hash, code_prefix, role_id, made_by, max_uses, expires_at, created_at)
      select invite_id, account_id, code_hash, code_prefix, role_id, made_by, max_uses, expires_at, created_at
      from e on conflict (id) do nothing`),
    'account:invite_accepted': lastPer(
      ['invite_id'],
      sql`update account_invites i set uses = e.uses from e where i.id = e.invite_id`,
    ),
    'account:invite_deleted': all(sql`delete from account_invites i using e where i.id = e.invite_id`),
    'account:login_assigned': lastPer(
      ['account_id', 'user_id', 'provider'],
      sql`
      insert into account_login_assignments (account_id, user_id, provider, id, login_connection_id, assigned_at)
      select account_id, user_id, provider, assignment_id, login_connection_id, assigned_at from e
      on conflict (account_id, user_id, provider) do update set
        id = excluded.id, login_connection_id = excluded.login_connection_id, assigned_at = excluded.assigned_at`,
    ),
    'account:login_unassigned': all(sql`
      delete from account_login_assignments a using e
      where a.account_id = e.account_id and a.user_id = e.user_id and a.provider = e.provider`),
    'account:primary_login_set': lastPer(
      ['account_id'],
      sql`
      update accounts a set primary_login_connection_id = e.login_connection_id, updated_at = e.set_at
      from e where a.id = e.account_id`,
    ),
  },
  messages: { 'account:login_assigned': loginAssigned, 'account:login_unassigned': loginAssigned },
  revokes: {
    'account:member_added': ofMember,
    'account:member_role_changed': ofMember,
    'account:member_removed': ofMember,
    // The permissions of two members change.
    'account:owner_replaced': ofAccount,
    'account:dissolved': ofAccount,
    'account:role_changed': ofAccount,
    'account:feature_override_set': ofAccount,
  },
});
