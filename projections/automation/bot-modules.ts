import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { BOT_MODULE_EVENTS } from '../../domain/automation/bot-modules';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer, pick } from '../runtime/drive/handlers';

/** Modules of bots that accounts have configured. */
export const botModules = eventProjection({
  name: 'bot-modules',
  version: 1,
  tables: ['bot_modules'],
  events: [BOT_MODULE_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'bot_module:configured': lastPer(
      ['account_id', 'module_name'],
      sql`
      insert into bot_modules (account_id, module_name, enabled, config, exempt_roles)
      select account_id, module_name, enabled, config::jsonb, exempt_roles from e
      on conflict (account_id, module_name) do update set enabled = excluded.enabled, config = excluded.config,
        exempt_roles = excluded.exempt_roles`,
    ),
    'bot_module:reset': all(sql`
      delete from bot_modules m using e where m.account_id = e.account_id and m.module_name = e.module_name`),
    'account:dissolved': all(sql`delete from bot_modules m using e where m.account_id = e.account_id`),
  },
});
