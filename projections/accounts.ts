import { ACCOUNT_EVENTS } from '../domain/accounts';
import { sql } from '../kernel/sql';
import { all, handled, ignored, last } from './runtime/handlers';

interface Membership {
  account_id: string;
  user_id: string;
}
const ofMember = ({ account_id, user_id }: Membership) => ({ account_id, user_id });

/**
 * Accounts, their roles, members and feature overrides. When a member's permissions or an account's features change,
 * nobody may go on with what was remembered of them.
 */
export const accounts = handled({
  name: 'accounts',
  version: 2,
  tables: ['accounts', 'account_roles', 'account_members', 'account_feature_overrides'],
  events: [ACCOUNT_EVENTS],
  on: {
    'account:created': all(sql`
      with role as (
        select distinct on (id) * from (
          select row_number() over () as place, (role ->> 'role_id')::uuid as id, account_id, role ->> 'slug' as slug,
                 role ->> 'name' as name, position, (role ->> 'is_system')::boolean as is_system,
                 nullif(role -> 'permissions', 'null') as permissions
          from e, jsonb_array_elements(roles) with ordinality as r (role, position)
        ) every order by id, place
      ), listed as (
        insert into account_roles (id, account_id, slug, name, position, is_system, permissions)
        select id, account_id, slug, name, position, is_system, array(select jsonb_array_elements_text(permissions))
        from role where permissions is not null on conflict (id) do nothing
      ), whole as (
        insert into account_roles (id, account_id, slug, name, position, is_system)
        select id, account_id, slug, name, position, is_system
        from role where permissions is null on conflict (id) do nothing
      ), members as (
        insert into account_members (account_id, user_id, id, role_id, joined_at)
        select account_id, owner_id, membership_id, (roles -> 0 ->> 'role_id')::uuid, created_at from e
        on conflict (account_id, user_id) do nothing
      )
      insert into accounts (id, name, owner_id, created_at)
      select account_id, name, owner_id, created_at from e on conflict (id) do nothing`),
    'account:member_added': last(
      ['account_id', 'user_id'],
      sql`
      insert into account_members (account_id, user_id, id, role_id, joined_at)
      select account_id, user_id, membership_id, role_id, added_at from e
      on conflict (account_id, user_id) do update set
        id = excluded.id, role_id = excluded.role_id, joined_at = excluded.joined_at`,
    ),
    'account:member_role_changed': last(
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
      update accounts a set owner_id = e.owner_id from e where a.id = e.account_id`,
    'account:feature_override_set': last(
      ['account_id', 'flag'],
      sql`
      delete from account_feature_overrides o using e
      where o.account_id = e.account_id and o.flag = e.flag and e.enabled is null`,
      sql`
      insert into account_feature_overrides (account_id, flag, enabled, set_at)
      select account_id, flag, enabled, set_at from e where enabled is not null
      on conflict (account_id, flag) do update set enabled = excluded.enabled, set_at = excluded.set_at`,
    ),
    // Kept beside the plans (projections/plans.ts).
    'account:plan_changed': ignored,
    'account:limit_override_set': ignored,
  },
  revokes: {
    'account:member_added': ofMember,
    'account:member_role_changed': ofMember,
    'account:member_removed': ofMember,
    // Two of them may do something else from now on.
    'account:owner_replaced': ({ account_id }) => ({ account_id }),
    'account:feature_override_set': ({ account_id }) => ({ account_id }),
  },
});
