import { SYSTEM_KEY_EVENTS } from '../domain/system-keys';
import { rowsOf, runsByType } from './event-runs';
import { projection, type EventProjection } from './projection';
import { recordRevocations } from './revocations';

/** Keys of the service itself that were made in the admin panel. */
export const systemKeys = projection<EventProjection>({
  name: 'system-keys',
  version: 1,
  from: { kind: 'domain_events', types: SYSTEM_KEY_EVENTS },
  tables: ['system_keys'],
  async apply(batch, tx, mode) {
    for (const run of runsByType(batch)) {
      if (run.type === 'system_key:created') {
        await tx.query(
          `insert into system_keys (id, key_hash, key_prefix, label, permissions, created_at)
           select key_id, key_hash, key_prefix, label, permissions, created_at
           from jsonb_to_recordset($1::jsonb) as e (key_id uuid, key_hash text, key_prefix text, label text, permissions text[],
                                                    created_at timestamptz)
           on conflict (id) do nothing`,
          [rowsOf(run)],
        );
      } else {
        await tx.query(
          `delete from system_keys k using jsonb_to_recordset($1::jsonb) as e (key_id uuid) where k.id = e.key_id`,
          [rowsOf(run)],
        );
      }
    }
    await recordRevocations(
      tx,
      mode,
      batch
        .filter((event) => event.type === 'system_key:revoked')
        .map((event) => ({ credential_id: String(event.data.key_id) })),
    );
    return [];
  },
});
