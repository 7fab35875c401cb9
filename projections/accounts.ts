import { ACCOUNT_EVENTS } from '../domain/accounts';
import { lastRowsOf, rowsOf, runsByType, type EventRun } from './event-runs';
import { projection, type EventProjection } from './projection';
import { recordRevocations, type Revocation } from './revocations';
import type { Queryable } from '../engines/postgres/port';

/** Accounts, their roles, members and feature overrides. */
export const accounts = projection<EventProjection>({
  name: 'accounts',
  version: 1,
  from: { kind: 'domain_events', types: ACCOUNT_EVENTS },
  tables: ['accounts', 'account_roles', 'account_members', 'account_feature_overrides'],
  async apply(batch, tx, mode) {
    const revocations: Revocation[] = [];
    for (const run of runsByType(batch)) {
      await applyRun(run, tx);
      for (const { data } of run.events) {
        if (run.type === 'account:created') continue;
        // Members' permissions or the account's features are others now: nobody may go on with what was remembered.
        revocations.push({
          account_id: String(data.account_id),
          ...(data.user_id ? { user_id: String(data.user_id) } : {}),
        });
      }
    }
    await recordRevocations(tx, mode, revocations);
    return [];
  },
});

async function applyRun(run: EventRun, tx: Queryable): Promise<void> {
  switch (run.type) {
    case 'account:created':
      await tx.query(
        `with created as (
           select * from jsonb_to_recordset($1::jsonb)
             as e (account_id uuid, name text, owner_id uuid, roles jsonb, membership_id uuid, created_at timestamptz)
         ), roles as (
           insert into account_roles (id, account_id, slug, name, position, is_system, permissions)
           select (role ->> 'role_id')::uuid, account_id, role ->> 'slug', role ->> 'name', position, (role ->> 'is_system')::boolean,
                  array(select jsonb_array_elements_text(role -> 'permissions'))
           from created, jsonb_array_elements(roles) with ordinality as r (role, position)
           on conflict (id) do nothing
         ), members as (
           insert into account_members (account_id, user_id, id, role_id, joined_at)
           select account_id, owner_id, membership_id, (roles -> 0 ->> 'role_id')::uuid, created_at from created
           on conflict (account_id, user_id) do nothing
         )
         insert into accounts (id, name, owner_id, created_at)
         select account_id, name, owner_id, created_at from created on conflict (id) do nothing`,
        [rowsOf(run)],
      );
      return;
    case 'account:member_added':
      await tx.query(
        `insert into account_members (account_id, user_id, id, role_id, joined_at)
         select account_id, user_id, membership_id, role_id, added_at
         from jsonb_to_recordset($1::jsonb) as e (account_id uuid, user_id uuid, membership_id uuid, role_id uuid, added_at timestamptz)
         on conflict (account_id, user_id) do update set id = excluded.id, role_id = excluded.role_id, joined_at = excluded.joined_at`,
        [lastRowsOf(run, 'account_id', 'user_id')],
      );
      return;
    case 'account:member_role_changed':
      await tx.query(
        `update account_members m set role_id = e.role_id
         from jsonb_to_recordset($1::jsonb) as e (account_id uuid, user_id uuid, role_id uuid)
         where m.account_id = e.account_id and m.user_id = e.user_id`,
        [lastRowsOf(run, 'account_id', 'user_id')],
      );
      return;
    case 'account:member_removed':
      await tx.query(
        `delete from account_members m using jsonb_to_recordset($1::jsonb) as e (account_id uuid, user_id uuid)
         where m.account_id = e.account_id and m.user_id = e.user_id`,
        [rowsOf(run)],
      );
      return;
    case 'account:feature_override_set': {
      const rows = lastRowsOf(run, 'account_id', 'flag');
      await tx.query(
        `delete from account_feature_overrides o using jsonb_to_recordset($1::jsonb) as e (account_id uuid, flag text, enabled boolean)
         where o.account_id = e.account_id and o.flag = e.flag and e.enabled is null`,
        [rows],
      );
      await tx.query(
        `insert into account_feature_overrides (account_id, flag, enabled, set_at)
         select account_id, flag, enabled, set_at
         from jsonb_to_recordset($1::jsonb) as e (account_id uuid, flag text, enabled boolean, set_at timestamptz)
         where enabled is not null
         on conflict (account_id, flag) do update set enabled = excluded.enabled, set_at = excluded.set_at`,
        [rows],
      );
    }
  }
}
