import { z } from 'zod';
import { type Sealing, seTokenContext } from '../../services/connections/se-tokens';

/** The first and last four characters, with stars between; only stars where there are eight or fewer. */
export const maskedToken = (token: string): string =>
  token.length <= 8 ? '*'.repeat(token.length) : `${token.slice(0, 4)}${'*'.repeat(8)}${token.slice(-4)}`;

const dateTime = z.string().meta({ format: 'date-time' });

/** A tip token as people see it. Source: spec extra-facts §22. */
export const SeToken = z
  .object({
    id: z.uuid(),
    platform: z.string().describe('The platform whose tips it gives'),
    label: z.string(),
    masked_token: z.string().describe('The first and last four characters'),
    refused: z.boolean().describe('StreamElements does not take it any more: save another one'),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'SeToken' });
export type SeToken = z.output<typeof SeToken>;

/** The account's tip tokens by platform; with `id` only that one. */
export async function seTokensOf(
  { db, secrets }: Sealing,
  account_id: string,
  id: string | null = null,
): Promise<SeToken[]> {
  const rows = await db.query<Omit<SeToken, 'masked_token'> & { sealed: string | null }>(
    `select t.id, t.platform, t.label, t.created_at, t.saved_at as updated_at, s.sealed,
       coalesce(s.refused, true) as refused
     from se_tokens t left join se_token_secrets s on s.token_id = t.id
     where t.account_id = $1 and ($2::uuid is null or t.id = $2) order by t.platform`,
    [account_id, id],
    'se-tokens',
  );
  return rows.map(({ sealed, ...row }) => ({
    ...row,
    masked_token: sealed === null ? '' : maskedToken(secrets.open(sealed, seTokenContext(row.id)).toString()),
  }));
}

/** A tip token as operators see it: nothing of the token itself. Source: spec doc1 §5.11. */
export const AdminSeToken = SeToken.omit({ masked_token: true, refused: true })
  .extend({ account_id: z.uuid() })
  .meta({ id: 'AdminSeToken' });
