import { API_KEY_EVENTS } from '../domain/api-keys';
import { lastRowsOf, rowsOf, runsByType } from './event-runs';
import { projection, type EventProjection } from './projection';
import { recordRevocations } from './revocations';

/** Personal keys. A revoked one leaves no row, and neither do the keys of a member who was removed. Source: spec doc1 §5.4. */
export const apiKeys = projection<EventProjection>({
  name: 'api-keys',
  version: 1,
  from: { kind: 'domain_events', types: [...API_KEY_EVENTS, 'account:member_removed'] },
  tables: ['api_keys'],
  async apply(batch, tx, mode) {
    for (const run of runsByType(batch)) {
      switch (run.type) {
        case 'api_key:created':
          await tx.query(
            `insert into api_keys (id, account_id, user_id, key_hash, key_prefix, label, permissions, created_at, expires_at)
             select key_id, account_id, user_id, key_hash, key_prefix, label, permissions, created_at, expires_at
             from jsonb_to_recordset($1::jsonb) as e (key_id uuid, account_id uuid, user_id uuid, key_hash text, key_prefix text,
                                                      label text, permissions text[], created_at timestamptz, expires_at timestamptz)
             on conflict (id) do nothing`,
            [rowsOf(run)],
          );
          break;
        case 'api_key:renamed':
          await tx.query(
            `update api_keys k set label = e.label from jsonb_to_recordset($1::jsonb) as e (key_id uuid, label text) where k.id = e.key_id`,
            [lastRowsOf(run, 'key_id')],
          );
          break;
        case 'api_key:revoked':
          await tx.query(
            `delete from api_keys k using jsonb_to_recordset($1::jsonb) as e (key_id uuid) where k.id = e.key_id`,
            [rowsOf(run)],
          );
          break;
        case 'account:member_removed':
          await tx.query(
            `delete from api_keys k using jsonb_to_recordset($1::jsonb) as e (account_id uuid, user_id uuid)
             where k.account_id = e.account_id and k.user_id = e.user_id`,
            [rowsOf(run)],
          );
          break;
      }
    }
    // Removed members are announced by the accounts projection.
    await recordRevocations(
      tx,
      mode,
      batch
        .filter((event) => event.type === 'api_key:revoked')
        .map((event) => ({ credential_id: String(event.data.key_id) })),
    );
    return [];
  },
});
