import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { BOT_COMMAND_EVENTS } from '../../domain/automation/bot-commands';
import { BOT_COMMAND_OVERRIDE_EVENTS } from '../../domain/automation/bot-command-overrides';
import { sql } from '../../kernel/sql';
import { all, each, eventProjection, lastPer, pick } from '../runtime/drive/handlers';

/** Commands of bots, and what accounts change about those of all accounts. */
export const botCommands = eventProjection({
  name: 'bot-commands',
  version: 1,
  tables: ['bot_commands', 'bot_command_overrides'],
  events: [BOT_COMMAND_EVENTS, BOT_COMMAND_OVERRIDE_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'bot_command:created': all(sql`
      insert into bot_commands
        (id, account_id, name, name_key, alias, alias_key, description, response_type, response, automation_id,
         platforms, min_role, cooldown_global, cooldown_user, discord_form, enabled, created_at, updated_at)
      select command_id, account_id, name, name_key, alias, alias_key, description, response_type, response,
        automation_id, platforms, min_role, cooldown_global, cooldown_user, discord_form, enabled, created_at, created_at
      from e on conflict (id) do nothing`),
    'bot_command:updated': each(
      ['command_id'],
      sql`
      update bot_commands c set name = e.name, name_key = e.name_key, alias = e.alias, alias_key = e.alias_key,
        description = e.description, response_type = e.response_type, response = e.response,
        automation_id = e.automation_id, platforms = e.platforms, min_role = e.min_role,
        cooldown_global = e.cooldown_global, cooldown_user = e.cooldown_user, discord_form = e.discord_form,
        enabled = e.enabled, updated_at = e.updated_at
      from e where c.id = e.command_id`,
    ),
    'bot_command:deleted': all(
      sql`delete from bot_commands c using e where c.id = e.command_id`,
      sql`delete from bot_command_overrides o using e where o.command_id = e.command_id`,
    ),
    'bot_command:override_set': lastPer(
      ['account_id', 'command_id'],
      sql`
      insert into bot_command_overrides
        (account_id, command_id, response, platforms, min_role, cooldown_global, cooldown_user, enabled)
      select account_id, command_id, response, platforms, min_role, cooldown_global, cooldown_user, enabled from e
      where exists (select from bot_commands c where c.id = e.command_id)
      on conflict (account_id, command_id) do update set response = excluded.response,
        platforms = excluded.platforms, min_role = excluded.min_role, cooldown_global = excluded.cooldown_global,
        cooldown_user = excluded.cooldown_user, enabled = excluded.enabled`,
    ),
    'bot_command:override_removed': all(sql`
      delete from bot_command_overrides o using e where o.account_id = e.account_id and o.command_id = e.command_id`),
    'account:dissolved': all(
      sql`delete from bot_commands c using e where c.account_id = e.account_id`,
      sql`delete from bot_command_overrides o using e where o.account_id = e.account_id`,
    ),
  },
});
