import { z } from 'zod';
import { UserApiKey } from './api-keys';
import type { Queryable } from '../../engines/postgres/port';

const { id, account_id, user_id, permissions, created_at, expires_at } = UserApiKey.shape;

/** A popout token as members see it; never the token itself. Source: spec doc2 §2.6. */
export const PopoutToken = z
  .object({
    id,
    account_id,
    user_id: user_id.nullable().describe('The member that it acts for'),
    token_prefix: z.string().describe('The kind of token and the first two characters of its random part'),
    label: z.string().nullable(),
    permissions,
    created_at,
    expires_at: expires_at.describe('Null: never'),
    revoked_at: expires_at,
  })
  .meta({ id: 'PopoutToken' });
export type PopoutToken = z.output<typeof PopoutToken>;

/** Reads a token of the account, even a revoked one; undefined when unknown. */
export async function popoutTokenOf(
  db: Queryable,
  { account_id }: { account_id: string },
  id: string,
): Promise<PopoutToken | undefined> {
  const columns = Object.keys(PopoutToken.shape).join(', ');
  const [row] = await db.query<PopoutToken>(
    `select ${columns} from popout_tokens where account_id = $1 and id = $2`,
    [account_id, id],
    'popout-token',
  );
  return row;
}
