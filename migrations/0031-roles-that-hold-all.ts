import type { Migration } from './index';

/** All permissions at the time of this step: earlier releases continue to read this list for an Owner. */
const HELD = `
  events:read, events:create, events:userinfo, overlays:read, overlays:create, overlays:edit,
  overlays:delete, overlays:access-read, overlays:access-grant, overlays:access-revoke, widgets:read,
  widgets:create, widgets:edit, widgets:delete, widgets:access-read, widgets:access-grant,
  widgets:access-revoke, extension-data:read, extension-data:edit, spotify:read, spotify:playback,
  spotify:volume, spotify:queue, spotify:playlist, spotify:device, spotify:worker, chat:read,
  chat:write, chat:userinfo, chat:delete, chat:ban, chat:timeout, chat:notes, chat:raid, chat:poll,
  chat:prediction, chat:refresh_user, connections:read, connections:create, connections:edit,
  connections:delete, settings:read, settings:edit, automations:read, automations:create,
  automations:edit, automations:delete, automations:execute, members:read, members:create,
  members:edit, members:delete, uploads:read, uploads:create, uploads:delete, rewards:read,
  rewards:create, rewards:edit, rewards:delete, tokens:read, tokens:create, tokens:edit,
  tokens:delete, apikeys:read, apikeys:create, apikeys:edit, apikeys:delete, account:read,
  account:edit, account:delete, plan:read, plan:edit, login-assignments:read,
  login-assignments:create, login-assignments:delete, extension-dev:read, extension-dev:create,
  extension-dev:edit, extension-dev:delete, extension-dev:publish, extension-dev:analytics,
  extension-dev:payouts, sounds:read, sounds:create, sounds:edit, sounds:delete, sounds:play,
  bot-modules:read, bot-modules:edit, copyright:read, copyright:edit, copyright:delete,
  copyright:vote, copyright:report, copyright:recommend, obs:read, obs:edit, obs:delete, roles:read,
  roles:edit, roles:delete, bot-commands:read, bot-commands:create, bot-commands:edit,
  bot-commands:delete, bot-connections:read, bot-connections:create, bot-connections:delete,
  se-tokens:read, se-tokens:create, se-tokens:delete, extension-store:read, extension-store:install,
  extension-store:uninstall, extension-store:configure, extension-store:review, history:read,
  history:share, history:export, history:delete, public-stats:read, public-stats:edit, audit-log:read`;

/**
 * An Owner holds every permission, also later ones: the row has a flag instead of a list. The list stays as the
 * column's default, because earlier releases read nothing else. Source: spec doc1 §5.10.
 */
export const rolesThatHoldAll: Migration = {
  name: '0031-roles-that-hold-all',
  async up(knex) {
    await knex.raw(`
      alter table account_roles
        add column holds_all boolean not null generated always as (is_system and slug = 'owner') stored;
      alter table account_roles alter column permissions set default '{${HELD.replace(/\s+/g, '')}}';
    `);
  },
};
