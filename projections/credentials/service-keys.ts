import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { SERVICE_KEY_EVENTS } from '../../domain/credentials/service-keys';
import { sql } from '../../kernel/sql';
import { all, eventProjection, pick } from '../runtime/drive/handlers';

/**
 * Keys of accounts. A revoked key leaves no row, nor do those of a dissolved account; the key of a departed maker
 * stays, without the maker's name. Source: spec doc1 §5.4.
 */
export const serviceKeys = eventProjection({
  name: 'service-keys',
  version: 3,
  tables: ['service_keys'],
  events: [SERVICE_KEY_EVENTS, pick(ACCOUNT_EVENTS, 'account:member_removed', 'account:dissolved')],
  on: {
    'account:service_key_created': all(sql`
      insert into service_keys
        (id, account_id, created_by, key_hash, key_prefix, label, permissions, created_at, updated_at, expires_at)
      select key_id, account_id, created_by, key_hash, key_prefix, label, permissions, created_at, created_at,
        expires_at from e on conflict (id) do nothing`),
    'account:service_key_updated': sql`
      update service_keys k set label = e.label, updated_at = e.updated_at from e where k.id = e.key_id`,
    'account:service_key_revoked': all(sql`delete from service_keys k using e where k.id = e.key_id`),
    'account:member_removed': all(sql`
      update service_keys k set created_by = null from e
      where k.account_id = e.account_id and k.created_by = e.user_id`),
    'account:dissolved': all(sql`delete from service_keys k using e where k.account_id = e.account_id`),
  },
  revokes: { 'account:service_key_revoked': ({ key_id }) => ({ credential_id: key_id }) },
});
