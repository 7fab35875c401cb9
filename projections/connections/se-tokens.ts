import { CONNECTIONS_WAKEUP } from '../../services/connections/active-connections';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { SE_TOKEN_EVENTS } from '../../domain/connections/se-tokens';
import { sql } from '../../kernel/sql';
import { all, each, eventProjection, pick } from '../runtime/drive/handlers';

/** Existing tip tokens; their values are sealed in a table of their own. */
export const seTokens = eventProjection({
  name: 'se-tokens',
  version: 2,
  tables: ['se_tokens'],
  wakes: CONNECTIONS_WAKEUP,
  events: [SE_TOKEN_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'se_token:saved': each(
      ['account_id', 'platform'],
      sql`
      insert into se_tokens (id, account_id, platform, label, created_at, saved_at)
      select token_id, account_id, platform, label, saved_at, saved_at from e
      on conflict (account_id, platform) do update set
        id = excluded.id, label = excluded.label, saved_at = excluded.saved_at`,
    ),
    'se_token:deleted': all(sql`delete from se_tokens t using e where t.id = e.token_id`),
    'account:dissolved': all(sql`delete from se_tokens t using e where t.account_id = e.account_id`),
  },
});
