import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { API_KEY_EVENTS } from '../../domain/credentials/api-keys';
import { sql } from '../../kernel/sql';
import { all, eventProjection, pick } from '../runtime/drive/handlers';

/**
 * Personal keys. A revoked key leaves no row, and neither do the keys of a removed member, or of a dissolved account.
 * Source: spec doc1 §5.4.
 */
export const apiKeys = eventProjection({
  name: 'api-keys',
  version: 2,
  tables: ['api_keys'],
  events: [API_KEY_EVENTS, pick(ACCOUNT_EVENTS, 'account:member_removed', 'account:dissolved')],
  on: {
    'api_key:created': all(sql`
      insert into api_keys (id, account_id, user_id, key_hash, key_prefix, label, permissions, created_at, expires_at)
      select key_id, account_id, user_id, key_hash, key_prefix, label, permissions, created_at, expires_at from e
      on conflict (id) do nothing`),
    'api_key:renamed': sql`update api_keys k set label = e.label from e where k.id = e.key_id`,
    'api_key:revoked': all(sql`delete from api_keys k using e where k.id = e.key_id`),
    'account:member_removed': all(sql`
      delete from api_keys k using e where k.account_id = e.account_id and k.user_id = e.user_id`),
    'account:dissolved': all(sql`delete from api_keys k using e where k.account_id = e.account_id`),
  },
  revokes: { 'api_key:revoked': ({ key_id }) => ({ credential_id: key_id }) },
});
