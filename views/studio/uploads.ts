import { z } from 'zod';
import { UPLOAD_PURPOSES } from '../../domain/studio/uploads';
import type { Queryable } from '../../engines/postgres/port';

/** A file of an account. Source: spec extra-facts §22. */
export const Upload = z
  .object({
    id: z.uuid(),
    filename: z.string(),
    content_type: z.string(),
    size_bytes: z.int().describe('Of the kept bytes'),
    storage_key: z.string(),
    purpose: z.enum(UPLOAD_PURPOSES),
    download_url: z.string().describe('Path of the content, which needs no credential for an hour at least'),
    created_at: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'Upload' });
export type UploadRow = Omit<z.output<typeof Upload>, 'download_url'>;

const UPLOAD = 'id, filename, content_type, size_bytes, storage_key, purpose, created_at';

/** A page of the account's uploads, newest first. */
export async function uploadsOf(
  db: Queryable,
  account_id: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ items: UploadRow[]; total: number }> {
  const rows = await db.query<UploadRow & { total: number }>(
    `with own as (select ${UPLOAD} from uploads where account_id = $1)
     select counted.total, page.* from (select count(*)::int as total from own) counted
       left join (select * from own order by created_at desc, id limit $2 offset $3) page on true
     order by created_at desc, id`,
    [account_id, limit, offset],
    'uploads',
  );
  const items = rows.flatMap(({ total: _total, ...item }) => (item.id === null ? [] : [item]));
  return { items, total: rows[0]!.total };
}

export async function uploadOf(db: Queryable, account_id: string, id: string): Promise<UploadRow | undefined> {
  const [row] = await db.query<UploadRow & Record<string, unknown>>(
    `select ${UPLOAD} from uploads where account_id = $1 and id = $2`,
    [account_id, id],
    'upload',
  );
  return row;
}

/** Content of a file, and whose it is. */
export interface FileContent extends Record<string, unknown> {
  account_id: string;
  content_type: string;
  size_bytes: number;
  blob_key: string;
  sha256: string;
}

export async function uploadContentOf(db: Queryable, id: string): Promise<FileContent | undefined> {
  const [row] = await db.query<FileContent>(
    'select account_id, content_type, size_bytes, storage_key as blob_key, sha256 from uploads where id = $1',
    [id],
    'upload-content',
  );
  return row;
}
