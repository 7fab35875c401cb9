import { UPLOAD_EVENTS } from '../../domain/studio/uploads';
import { sql } from '../../kernel/sql';
import { all, eventProjection } from '../runtime/drive/handlers';

/** Uploads of accounts. Source: spec extra-facts §22. */
export const uploads = eventProjection({
  name: 'uploads',
  version: 1,
  tables: ['uploads'],
  events: [UPLOAD_EVENTS],
  on: {
    'upload:created': all(sql`
      insert into uploads (id, account_id, filename, content_type, size_bytes, storage_key, sha256, purpose, created_at)
      select upload_id, account_id, filename, content_type, size_bytes, storage_key, sha256, purpose, created_at
      from e on conflict (id) do nothing`),
    'upload:deleted': all(sql`delete from uploads u using e where u.id = e.upload_id`),
  },
});
