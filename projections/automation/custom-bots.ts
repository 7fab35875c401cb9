import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { CUSTOM_BOT_EVENTS } from '../../domain/automation/custom-bots';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer, pick } from '../runtime/drive/handlers';

/** Accounts for which an operator has decided whether they may have bots of their own. */
export const customBots = eventProjection({
  name: 'custom-bots',
  version: 1,
  tables: ['custom_bot_overrides'],
  events: [CUSTOM_BOT_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'custom_bot:override_set': lastPer(
      ['account_id'],
      sql`delete from custom_bot_overrides o using e where o.account_id = e.account_id and e.allowed is null`,
      sql`
      insert into custom_bot_overrides (account_id, allowed) select account_id, allowed from e where allowed is not null
      on conflict (account_id) do update set allowed = excluded.allowed`,
    ),
    'account:dissolved': all(sql`delete from custom_bot_overrides o using e where o.account_id = e.account_id`),
  },
});
