import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { POPOUT_TOKEN_EVENTS } from '../../domain/credentials/popout-tokens';
import { sql } from '../../kernel/sql';
import { all, eventProjection, pick } from '../runtime/drive/handlers';

/**
 * Popout tokens; a revoked token stays in the list with its time, as long as the account exists. Source: spec doc2
 * §2.6.
 */
export const popoutTokens = eventProjection({
  name: 'tokens',
  version: 2,
  tables: ['popout_tokens'],
  events: [POPOUT_TOKEN_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'popout_token:created': all(sql`
      insert into popout_tokens
        (id, account_id, user_id, created_by, token_hash, token_prefix, label, permissions, created_at, expires_at)
      select token_id, account_id, user_id, created_by, token_hash, token_prefix, label, permissions, created_at,
        expires_at from e on conflict (id) do nothing`),
    'popout_token:updated': sql`
      update popout_tokens t set label = e.label, expires_at = e.expires_at from e where t.id = e.token_id`,
    'popout_token:revoked': all(sql`
      update popout_tokens t set revoked_at = e.revoked_at from e where t.id = e.token_id`),
    'account:dissolved': all(sql`delete from popout_tokens t using e where t.account_id = e.account_id`),
  },
  revokes: {
    // The change may end the token: open connections on the account recheck their rights.
    'popout_token:updated': ({ account_id }) => ({ account_id }),
    'popout_token:revoked': ({ token_id }) => ({ credential_id: token_id }),
  },
});
