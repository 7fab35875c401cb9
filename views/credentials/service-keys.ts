import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';
import { UserApiKey } from './api-keys';

const { id, account_id, key_prefix, label, permissions, created_at, expires_at, last_used_at } = UserApiKey.shape;

/** A key of an account as its members see it; never the key itself. Source: spec doc2 §2.5. */
export const AccountServiceKey = z
  .object({
    id,
    account_id,
    created_by: z.uuid().nullable().describe('The member who made it; null once they left'),
    key_prefix,
    label,
    permissions,
    created_at,
    updated_at: created_at,
    expires_at,
    last_used_at,
  })
  .meta({ id: 'AccountServiceKey' });
export type AccountServiceKey = z.output<typeof AccountServiceKey>;

/** The account's keys, newest first; with `id` only that one. */
export function accountServiceKeys(
  db: Queryable,
  owner: { account_id: string },
  only: string | null = null,
): Promise<AccountServiceKey[]> {
  return db.query<AccountServiceKey>(
    `select k.id, k.account_id, k.created_by, k.key_prefix, k.label, k.permissions, k.created_at, k.updated_at,
       k.expires_at, u.last_used_at
     from service_keys k left join credential_uses u on u.credential_id = k.id::text
     where k.account_id = $1 and ($2::uuid is null or k.id = $2) order by k.created_at desc, k.id desc`,
    [owner.account_id, only],
    'account-service-keys',
  );
}
