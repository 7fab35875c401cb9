import { z } from 'zod';
import type { Queryable } from '../engines/postgres/port';
import type { SecretBox } from '../engines/secrets/port';

export const seTokenContext = (token_id: string): string => `se-token ${token_id}`;

interface Sealing {
  db: Queryable;
  secrets: SecretBox;
}

/** Keeps a tip token, over the one before. */
export async function writeSeToken({ db, secrets }: Sealing, token_id: string, token: string): Promise<void> {
  await db.query(
    `insert into se_token_secrets (token_id, sealed) values ($1, $2)
     on conflict (token_id) do update set sealed = excluded.sealed, refused = false, saved_at = clock_timestamp()`,
    [token_id, secrets.seal(token, seTokenContext(token_id))],
    'se-token-write',
  );
}

/** Null where there is none. `refused`: StreamElements does not take it. */
export async function readSeToken(
  { db, secrets }: Sealing,
  token_id: string,
): Promise<{ token: string; refused: boolean } | null> {
  const [row] = await db.query(
    'select sealed, refused from se_token_secrets where token_id = $1',
    [token_id],
    'se-token',
  );
  if (row === undefined) return null;
  return { token: secrets.open(row['sealed'], seTokenContext(token_id)).toString(), refused: row['refused'] };
}

export async function refuseSeToken(db: Queryable, token_id: string): Promise<void> {
  await db.query('update se_token_secrets set refused = true where token_id = $1', [token_id], 'se-token-refuse');
}

export async function dropSeToken(db: Queryable, token_id: string): Promise<void> {
  await db.query('delete from se_token_secrets where token_id = $1', [token_id], 'se-token-drop');
}

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

/** The account's tip tokens by platform; with `id` that one alone. */
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
