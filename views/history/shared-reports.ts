import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';

const dateTime = z.string().meta({ format: 'date-time' });

/** A shared link of a report, without its secrets. */
export const SharedLink = z
  .object({
    id: z.uuid(),
    expires_at: dateTime,
    allow_export: z.boolean(),
    has_password: z.boolean(),
    created_at: dateTime,
  })
  .meta({ id: 'StreamReportLink' });
export type SharedLink = z.output<typeof SharedLink>;

const LINK = 'id, expires_at, allow_export, password_hash is not null as has_password, created_at';

/** A link with its session; an ended one as well. */
export interface StoredLink extends SharedLink {
  session_id: string;
  is_revoked: boolean;
}

/** Active links of a session, newest first. */
export const linksOf = (db: Queryable, session_id: string): Promise<SharedLink[]> =>
  db.query<SharedLink & Record<string, unknown>>(
    `select ${LINK} from session_links
     where session_id = $1 and revoked_at is null and expires_at > now() order by created_at desc, id`,
    [session_id],
    'session-links',
  );

/** A link of the account. */
export async function linkOf(db: Queryable, account_id: string, id: string): Promise<StoredLink | undefined> {
  const rows = await db.query<StoredLink & Record<string, unknown>>(
    `select ${LINK}, session_id, revoked_at is not null as is_revoked from session_links where account_id = $1 and id = $2`,
    [account_id, id],
    'session-link',
  );
  return rows[0];
}

export interface ActiveLink {
  session_id: string;
  account_id: string;
  password_hash: string | null;
  allow_export: boolean;
}

/** The active link of a token, by the token's hash. */
export async function activeLinkOf(db: Queryable, token_hash: string): Promise<ActiveLink | undefined> {
  const rows = await db.query<ActiveLink & Record<string, unknown>>(
    `select session_id, account_id, password_hash, allow_export from session_links
     where token_hash = $1 and revoked_at is null and expires_at > now()`,
    [token_hash],
    'session-link-of-token',
  );
  return rows[0];
}
