import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { WIDGET_EVENTS } from '../../domain/studio/widgets';
import { sql } from '../../kernel/sql';
import { all, each, eventProjection, noEffect, pick } from '../runtime/drive/handlers';

/** Widgets, and what single members may do with them; a member who left loses their entries. */
export const widgets = eventProjection({
  name: 'widgets',
  version: 1,
  tables: ['widgets', 'widget_access'],
  events: [WIDGET_EVENTS, pick(ACCOUNT_EVENTS, 'account:member_removed', 'account:dissolved')],
  on: {
    'widget:created': all(sql`
      insert into widgets
        (id, account_id, widget_type, name, config, revision, created_by, created_at, updated_at)
      select widget_id, account_id, widget_type, name, config::jsonb, 1, created_by, created_at, created_at
      from e on conflict (id) do nothing`),
    'widget:updated': sql`
      update widgets w set name = e.name, config = e.config::jsonb, revision = w.revision + 1, updated_at = e.updated_at
      from e where w.id = e.widget_id`,
    'widget:token_rotated': noEffect,
    'widget:deleted': all(
      sql`delete from widgets w using e where w.id = e.widget_id`,
      sql`delete from widget_access a using e where a.widget_id = e.widget_id`,
    ),
    'widget:access_granted': each(
      ['widget_id', 'user_id'],
      sql`
      insert into widget_access (id, widget_id, account_id, user_id, role, granted_by, created_at)
      select entry_id, widget_id, account_id, user_id, role, granted_by, granted_at from e
      on conflict (widget_id, user_id) do update set role = excluded.role, granted_by = excluded.granted_by`,
    ),
    'widget:access_revoked': all(sql`
      delete from widget_access a using e where a.widget_id = e.widget_id and a.user_id = e.user_id`),
    'account:member_removed': all(sql`
      delete from widget_access a using e where a.account_id = e.account_id and a.user_id = e.user_id`),
    'account:dissolved': all(
      sql`delete from widgets w using e where w.account_id = e.account_id`,
      sql`delete from widget_access a using e where a.account_id = e.account_id`,
    ),
  },
  // Presence on its channel may end.
  revokes: { 'widget:access_granted': ({ account_id, user_id }) => ({ account_id, user_id }) },
});
