import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { ALERT_CONTROL_EVENTS, controlMessages } from '../../domain/studio/alert-controls';
import { LAYER_EVENTS } from '../../domain/studio/layers';
import { OVERLAY_EVENTS, overlayChannel } from '../../domain/studio/overlays';
import { sql } from '../../kernel/sql';
import { all, each, eventProjection, pick } from '../runtime/drive/handlers';

/** Ends the tokens of deleted overlays, and their links. */
const OF_OVERLAY = sql`
  select t.id::text as credential_id from overlay_tokens t join e on e.overlay_id = t.resource_id`;

/**
 * Overlays of accounts with their layers, folders, links, access entries, and the tokens of their pages. A member who
 * left loses their entries. Source: spec extra-facts §7, doc1 §5.6.
 */
export const overlays = eventProjection({
  name: 'overlays',
  version: 2,
  tables: ['overlays', 'overlay_layers', 'overlay_folders', 'overlay_access', 'overlay_tokens'],
  events: [
    OVERLAY_EVENTS,
    LAYER_EVENTS,
    ALERT_CONTROL_EVENTS,
    pick(ACCOUNT_EVENTS, 'account:member_removed', 'account:dissolved'),
  ],
  on: {
    'overlay:created': all(
      sql`
      insert into overlays
        (id, account_id, folder_id, name, key, width, height, background, revision, created_at, updated_at)
      select overlay_id, account_id, folder_id, name, key, width, height, background, 0, created_at, created_at
      from e on conflict (id) do nothing`,
      sql`
      insert into overlay_tokens (id, kind, token_hash, account_id, resource_id, channel, is_listed, created_at)
      select token_id, 'overlay', token_hash, account_id, overlay_id, 'overlay:' || key, false, created_at
      from e on conflict (id) do nothing`,
    ),
    'overlay:updated': each(
      ['overlay_id'],
      sql`
      update overlays o set name = e.name, width = e.width, height = e.height, background = e.background,
        folder_id = e.folder_id, updated_at = e.updated_at from e where o.id = e.overlay_id`,
    ),
    'overlay:token_rotated': each(
      ['overlay_id'],
      sql`delete from overlay_tokens t using e where t.resource_id = e.overlay_id and t.kind = 'overlay'`,
      sql`
      insert into overlay_tokens (id, kind, token_hash, account_id, resource_id, channel, is_listed, created_at)
      select token_id, 'overlay', token_hash, account_id, overlay_id, 'overlay:' || key, false, rotated_at
      from e on conflict (id) do nothing`,
    ),
    'overlay:deleted': all(
      sql`delete from overlays o using e where o.id = e.overlay_id`,
      sql`delete from overlay_layers l using e where l.overlay_id = e.overlay_id`,
      sql`delete from overlay_access a using e where a.overlay_id = e.overlay_id`,
      sql`delete from overlay_tokens t using e where t.resource_id = e.overlay_id`,
    ),
    'overlay:shared': all(sql`
      insert into overlay_tokens
        (id, kind, token_hash, account_id, resource_id, channel, is_listed, created_at, expires_at)
      select link_id, 'shared_overlay', token_hash, account_id, overlay_id, 'overlay:' || key, is_listed, created_at,
        expires_at
      from e on conflict (id) do nothing`),
    'overlay:unshared': all(sql`delete from overlay_tokens t using e where t.id = e.link_id`),
    'overlay:access_granted': each(
      ['overlay_id', 'user_id'],
      sql`
      insert into overlay_access (id, overlay_id, account_id, user_id, role, granted_by, created_at)
      select entry_id, overlay_id, account_id, user_id, role, granted_by, granted_at from e
      on conflict (overlay_id, user_id) do update set role = excluded.role, granted_by = excluded.granted_by`,
    ),
    'overlay:access_revoked': all(sql`
      delete from overlay_access a using e where a.overlay_id = e.overlay_id and a.user_id = e.user_id`),
    'overlay_folder:created': all(sql`
      insert into overlay_folders (id, account_id, parent_id, name, created_at)
      select folder_id, account_id, parent_id, name, created_at from e on conflict (id) do nothing`),
    'overlay_folder:updated': each(
      ['folder_id'],
      sql`update overlay_folders f set name = e.name, parent_id = e.parent_id from e where f.id = e.folder_id`,
    ),
    'overlay_folder:deleted': each(
      ['account_id'],
      sql`delete from overlay_folders f using e where f.id = e.folder_id`,
      sql`
      update overlay_folders f set parent_id = e.parent_id from e
      where f.account_id = e.account_id and f.parent_id = e.folder_id`,
      sql`
      update overlays o set folder_id = e.parent_id from e
      where o.account_id = e.account_id and o.folder_id = e.folder_id`,
    ),
    'overlay:layers_changed': each(
      ['overlay_id'],
      sql`
      insert into overlay_layers (overlay_id, id, type, name, config, visible, sort_order, locked)
      select e.overlay_id, l.id, l.type, l.name, l.config::jsonb, l.visible, l.sort_order, l.locked
      from e join overlays o on o.id = e.overlay_id,
        jsonb_to_recordset(e.changed) as l (id uuid, type text, name text, config text, visible boolean,
          sort_order integer, locked boolean)
      on conflict (overlay_id, id) do update set type = excluded.type, name = excluded.name, config = excluded.config,
        visible = excluded.visible, sort_order = excluded.sort_order, locked = excluded.locked`,
      sql`delete from overlay_layers l using e where l.overlay_id = e.overlay_id and l.id = any(e.removed)`,
      sql`update overlays o set revision = e.revision, updated_at = e.changed_at from e where o.id = e.overlay_id`,
    ),
    'alerts:controlled': each(
      ['account_id'],
      sql`
      update overlays o set alerts_paused = p.paused, alerts_muted = p.muted
      from e, jsonb_to_recordset(e.pages) as p (kind text, page_id uuid, paused boolean, muted boolean)
      where p.kind = 'overlay' and o.id = p.page_id`,
    ),
    'account:member_removed': all(sql`
      delete from overlay_access a using e where a.account_id = e.account_id and a.user_id = e.user_id`),
    'account:dissolved': all(
      sql`
      delete from overlay_layers l using overlays o, e where o.id = l.overlay_id and o.account_id = e.account_id`,
      sql`delete from overlays o using e where o.account_id = e.account_id`,
      sql`delete from overlay_folders f using e where f.account_id = e.account_id`,
      sql`delete from overlay_access a using e where a.account_id = e.account_id`,
      sql`delete from overlay_tokens t using e where t.account_id = e.account_id`,
    ),
  },
  messages: {
    'overlay:updated': ({ key, width, height, background }) => [update(key, { width, height, background })],
    'overlay:layers_changed': ({ key, revision, changed, removed }) => {
      const hidden = changed.filter(({ visible }) => !visible).map(({ id }) => id);
      const shown = changed.filter(({ visible }) => visible).map((one) => ({ ...one, config: JSON.parse(one.config) }));
      return [update(key, { revision, changed: shown, removed: [...removed, ...hidden] })];
    },
    'alerts:controlled': (event) => controlMessages('overlay', event),
  },
  revokes: {
    'overlay:token_rotated': sql`
      select t.id::text as credential_id from overlay_tokens t join e on e.overlay_id = t.resource_id
      where t.kind = 'overlay'`,
    'overlay:deleted': OF_OVERLAY,
    // Presence on its channel may end.
    'overlay:access_granted': ({ account_id, user_id }) => ({ account_id, user_id }),
    'overlay:unshared': ({ link_id }) => ({ credential_id: link_id }),
  },
});

const update = (key: string, data: object) => ({
  channel: overlayChannel(key),
  event_type: 'overlay:update',
  data: JSON.stringify(data),
});
