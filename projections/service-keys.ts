import { ACCOUNT_EVENTS } from '../domain/accounts';
import { SERVICE_KEY_EVENTS } from '../domain/service-keys';
import { sql } from '../kernel/sql';
import { all, handled, pick } from './runtime/handlers';

/**
 * Keys of accounts. A revoked one leaves no row, nor do those of a dissolved account; one whose maker left goes on
 * without naming them. Source: spec doc1
 * §5.4.
 */
export const serviceKeys = handled({
  name: 'service-keys',
  version: 2,
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
