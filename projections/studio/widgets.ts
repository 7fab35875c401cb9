import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { ALERT_CONTROL_EVENTS, controlMessages } from '../../domain/studio/alert-controls';
import { WIDGET_EVENTS, widgetChannel } from '../../domain/studio/widgets';
import { sql } from '../../kernel/sql';
import { all, each, eventProjection, pick } from '../runtime/drive/handlers';

const OF_WIDGET = sql`select t.id::text as credential_id from widget_tokens t join e on e.widget_id = t.widget_id`;

/**
 * Widgets with the tokens of their pages, and what single members may do with them; a member who left loses their
 * entries.
 */
export const widgets = eventProjection({
  name: 'widgets',
  version: 3,
  tables: ['widgets', 'widget_access', 'widget_tokens'],
  events: [WIDGET_EVENTS, ALERT_CONTROL_EVENTS, pick(ACCOUNT_EVENTS, 'account:member_removed', 'account:dissolved')],
  on: {
    'widget:created': all(
      sql`
      insert into widgets
        (id, account_id, widget_type, name, config, revision, created_by, created_at, updated_at)
      select widget_id, account_id, widget_type, name, config::jsonb, 1, created_by, created_at, created_at
      from e on conflict (id) do nothing`,
      sql`
      insert into widget_tokens (id, token_hash, account_id, widget_id, channel, created_at)
      select token_id, token_hash, account_id, widget_id, 'widget:' || widget_id, created_at
      from e where token_id is not null on conflict (id) do nothing`,
    ),
    'widget:updated': sql`
      update widgets w set name = e.name, config = e.config::jsonb, revision = w.revision + 1, updated_at = e.updated_at
      from e where w.id = e.widget_id`,
    'widget:token_rotated': each(
      ['widget_id'],
      sql`delete from widget_tokens t using e where t.widget_id = e.widget_id`,
      sql`
      insert into widget_tokens (id, token_hash, account_id, widget_id, channel, created_at)
      select token_id, token_hash, account_id, widget_id, 'widget:' || widget_id, rotated_at
      from e where token_id is not null on conflict (id) do nothing`,
    ),
    'widget:deleted': all(
      sql`delete from widgets w using e where w.id = e.widget_id`,
      sql`delete from widget_access a using e where a.widget_id = e.widget_id`,
      sql`delete from widget_tokens t using e where t.widget_id = e.widget_id`,
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
    'alerts:controlled': each(
      ['account_id'],
      sql`
      update widgets w set alerts_paused = p.paused, alerts_muted = p.muted
      from e, jsonb_to_recordset(e.pages) as p (kind text, page_id uuid, paused boolean, muted boolean)
      where p.kind = 'widget' and w.id = p.page_id`,
    ),
    'account:member_removed': all(sql`
      delete from widget_access a using e where a.account_id = e.account_id and a.user_id = e.user_id`),
    'account:dissolved': all(
      sql`delete from widgets w using e where w.account_id = e.account_id`,
      sql`delete from widget_access a using e where a.account_id = e.account_id`,
      sql`delete from widget_tokens t using e where t.account_id = e.account_id`,
    ),
  },
  messages: {
    'alerts:controlled': (event) => controlMessages('widget', event),
    // A writer of the release before sends the change itself, and gives it no number.
    'widget:updated': ({ widget_id, name, config, revision }) =>
      revision === null ? [] : [update(widget_id, { name, config: JSON.parse(config), revision })],
  },
  revokes: {
    'widget:token_rotated': OF_WIDGET,
    'widget:deleted': OF_WIDGET,
    // Presence on its channel may end.
    'widget:access_granted': ({ account_id, user_id }) => ({ account_id, user_id }),
  },
});

const update = (widget_instance_id: string, members: object) => ({
  channel: widgetChannel(widget_instance_id),
  event_type: 'widget:update',
  data: JSON.stringify({ widget_instance_id, ...members }),
});
