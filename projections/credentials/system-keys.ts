import { SYSTEM_KEY_EVENTS } from '../../domain/credentials/system-keys';
import { sql } from '../../kernel/sql';
import { all, eventProjection } from '../runtime/drive/handlers';

/** Keys of the service itself from the admin panel. */
export const systemKeys = eventProjection({
  name: 'system-keys',
  version: 1,
  tables: ['system_keys'],
  events: [SYSTEM_KEY_EVENTS],
  on: {
    'system_key:created': all(sql`
      insert into system_keys (id, key_hash, key_prefix, label, permissions, created_at)
      select key_id, key_hash, key_prefix, label, permissions, created_at from e
      on conflict (id) do nothing`),
    'system_key:revoked': all(sql`delete from system_keys k using e where k.id = e.key_id`),
  },
  revokes: { 'system_key:revoked': ({ key_id }) => ({ credential_id: key_id }) },
});
