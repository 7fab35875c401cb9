import type { Queryable } from '../../engines/postgres/port';
import type { SecretBox } from '../../privacy/secrets/port';

export const seTokenContext = (token_id: string): string => `se-token ${token_id}`;

export interface Sealing {
  db: Queryable;
  secrets: SecretBox;
}

/** Stores a tip token; replaces the previous one. */
export async function writeSeToken({ db, secrets }: Sealing, token_id: string, token: string): Promise<void> {
  await db.query(
    `insert into se_token_secrets (token_id, sealed) values ($1, $2)
     on conflict (token_id) do update set sealed = excluded.sealed, refused = false, saved_at = clock_timestamp()`,
    [token_id, secrets.seal(token, seTokenContext(token_id))],
    'se-token-write',
  );
}

/** Null without a token. `refused`: StreamElements has refused it. */
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
