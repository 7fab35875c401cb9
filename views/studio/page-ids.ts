import type { Queryable } from '../../engines/postgres/port';

/** Id of an overlay or widget that the reader may see, by its id, or by the key of an overlay; null of none. */
export async function pageId(
  db: Queryable,
  { account_id, user_id }: { account_id: string; user_id: string | null },
  kind: 'overlay' | 'widget',
  id: string,
): Promise<string | null> {
  const by_key = kind === 'overlay' ? 'or p.key = $3' : '';
  const [row] = await db.query<{ id: string }>(
    `select p.id from ${kind}s p
       left join ${kind}_access x on x.${kind}_id = p.id and x.user_id = $2
         and not exists (select from accounts a where a.id = p.account_id and a.owner_id = $2)
     where p.account_id = $1 and (p.id::text = lower($3) ${by_key}) and x.role is distinct from 'none'`,
    [account_id, user_id, id],
    `${kind}-page-id`,
  );
  return row?.id ?? null;
}
