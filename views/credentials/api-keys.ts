import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';

const dateTime = z.string().meta({ format: 'date-time' });

/** A personal key as its owner sees it; never the key itself. Source: spec doc2 §2.5. */
export const UserApiKey = z
  .object({
    id: z.uuid(),
    user_id: z.uuid(),
    account_id: z.uuid(),
    key_prefix: z.string().describe('The kind of key and the first two characters of its random part'),
    label: z.string(),
    permissions: z.array(z.string()),
    created_at: dateTime,
    expires_at: dateTime.nullable(),
    last_used_at: dateTime.nullable().describe('May lag by 15 seconds'),
  })
  .meta({ id: 'UserApiKey' });
export type UserApiKey = z.output<typeof UserApiKey>;

/** The user's own keys for the account, newest first; with `id` only that one. */
export function userApiKeys(
  db: Queryable,
  owner: { account_id: string | null; user_id: string | null },
  id: string | null = null,
): Promise<UserApiKey[]> {
  return db.query<UserApiKey>(
    `select k.id, k.user_id, k.account_id, k.key_prefix, k.label, k.permissions, k.created_at, k.expires_at,
       u.last_used_at
     from api_keys k left join credential_uses u on u.credential_id = k.id::text
     where k.account_id = $1 and k.user_id = $2 and ($3::uuid is null or k.id = $3)
       order by k.created_at desc, k.id desc`,
    [owner.account_id, owner.user_id, id],
    'user-api-keys',
  );
}
