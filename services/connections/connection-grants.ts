import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';
import type { PersonalTexts } from '../../privacy/subject-keys/port';
import type { GrantKind, GrantOwner, OAuthGrant } from '../../vendors/oauth/port';

/** Sealed part of a grant: its tokens, and the vendor's names of its owner. */
const Sealed = z.object({
  access_token: z.string(),
  refresh_token: z.string().nullable(),
  username: z.string().nullable(),
  display_name: z.string().nullable(),
  avatar_url: z.string().nullable(),
});
type Sealed = z.output<typeof Sealed>;

/** Identifies a grant: its connection and the OAuth app that obtained it. */
export interface GrantPlace {
  connection_id: string;
  /** Null for a grant of the installation. */
  account_id: string | null;
  kind: GrantKind;
  platform: string;
  /** Owner of the app: the installation or the account. */
  app: 'system' | 'account';
  client_id: string;
}

/** A stored grant, opened. */
export interface KeptGrant extends GrantPlace, Sealed {
  platform_user_id: string;
  scopes: readonly string[];
  /** Unix milliseconds; null: no expiry. */
  expires_at: number | null;
  /** Raised with each answer of the vendor that was stored. */
  generation: number;
  /** Unix milliseconds. */
  stored_at: number;
  /** The vendor had refused the previous token. */
  after_refusal: boolean;
  /** The vendor refuses the tokens for good. */
  dead: boolean;
}

interface Grants {
  db: Pick<Queryable, 'query'>;
  texts: PersonalTexts;
}

interface Row extends Omit<KeptGrant, keyof Sealed>, Record<string, unknown> {
  key_id: string;
  sealed: string;
}

/**
 * Subject whose key seals a grant: the vendor's user, so that erasing the user makes the tokens unreadable everywhere.
 */
const subjectOf = ({ platform, platform_user_id }: Pick<KeptGrant, 'platform' | 'platform_user_id'>): string =>
  `${platform}:${platform_user_id}`;
const contextOf = (connection_id: string): string => `connection-grant ${connection_id}`;

const COLUMNS = `connection_id, account_id, kind, platform, platform_user_id, app, client_id, scopes, key_id, sealed,
  generation, after_refusal, dead, (extract(epoch from expires_at) * 1000)::float8 as expires_at,
  (extract(epoch from stored_at) * 1000)::float8 as stored_at`;

const sealedOf = (grant: OAuthGrant, kept: Omit<Sealed, 'access_token'>): string =>
  JSON.stringify({
    ...kept,
    access_token: grant.access_token,
    refresh_token: grant.refresh_token ?? kept.refresh_token,
  });

async function opened({ texts }: Grants, row: Row | undefined): Promise<KeptGrant | null> {
  if (row === undefined) return null;
  const { key_id, sealed, ...grant } = row;
  const text = await texts.open({ key_id, sealed }, contextOf(row.connection_id));
  return text === null ? null : { ...grant, ...Sealed.parse(JSON.parse(text)) };
}

/** Returns null without a grant, and after the erasure of its owner. */
export async function readGrant(grants: Grants, connection_id: string): Promise<KeptGrant | null> {
  const [row] = await grants.db.query<Row>(
    `select ${COLUMNS} from connection_grants where connection_id = $1`,
    [connection_id],
    'connection-grant',
  );
  return opened(grants, row);
}

/** Part of a grant that is readable without its key. */
export type GrantRow = Pick<KeptGrant, 'connection_id' | 'account_id' | 'platform' | 'generation' | 'dead'>;

/** Reads the unsealed part, which remains after the erasure of the grant's owner. */
export async function readGrantRow(db: Pick<Queryable, 'query'>, connection_id: string): Promise<GrantRow | null> {
  const [row] = await db.query<GrantRow & Record<string, unknown>>(
    'select connection_id, account_id, platform, generation, dead from connection_grants where connection_id = $1',
    [connection_id],
    'connection-grant-row',
  );
  return row ?? null;
}

/** Stores the grant of a login at the vendor; replaces the previous one. */
export async function writeGrant(
  { db, texts }: Grants,
  { place, owner, grant, asked }: { place: GrantPlace; owner: GrantOwner; grant: OAuthGrant; asked: readonly string[] },
): Promise<void> {
  const { platform_user_id, ...names } = owner;
  const text = sealedOf(grant, { ...names, refresh_token: null });
  const { key_id, sealed } = await texts.seal(
    subjectOf({ ...place, platform_user_id }),
    text,
    contextOf(place.connection_id),
  );
  await db.query(
    `insert into connection_grants as g (connection_id, account_id, kind, platform, platform_user_id, app, client_id,
                                         scopes, expires_at, key_id, sealed)
     values ($1, $2, $3, $4, $5, $6, $7, $8, to_timestamp($9 / 1000.0), $10, $11)
     on conflict (connection_id) do update set
       platform_user_id = excluded.platform_user_id, app = excluded.app, client_id = excluded.client_id,
       scopes = excluded.scopes, expires_at = excluded.expires_at, key_id = excluded.key_id, sealed = excluded.sealed,
       generation = g.generation + 1, stored_at = clock_timestamp(), after_refusal = false, dead = false,
       refreshing = null, refreshing_until = null,
       subscriptions = case when g.client_id = excluded.client_id then g.subscriptions end,
       subscription_problem = case when g.client_id = excluded.client_id then g.subscription_problem end`,
    [
      ...[place.connection_id, place.account_id, place.kind, place.platform, platform_user_id, place.app],
      ...[place.client_id, grant.scopes ?? asked, grant.expires_at, key_id, sealed],
    ],
    'connection-grant-write',
  );
}

/**
 * Claims the refresh lease of this grant. The lease expires, so that a dead process cannot keep it. Returns false when
 * another process holds it or the tokens have changed.
 */
export async function claimRefresh(
  db: Queryable,
  { connection_id, generation }: Pick<KeptGrant, 'connection_id' | 'generation'>,
  claim: { holder: string; for_ms: number },
): Promise<boolean> {
  const rows = await db.query(
    `update connection_grants
     set refreshing = $3, refreshing_until = clock_timestamp() + make_interval(secs => $4 / 1000.0)
     where connection_id = $1 and generation = $2 and not dead
       and (refreshing_until is null or refreshing_until <= clock_timestamp())
     returning 1 as one`,
    [connection_id, generation, claim.holder, claim.for_ms],
    'connection-grant-claim',
  );
  return rows.length > 0;
}

/** Releases the refresh lease, after a refusal or a failed call. */
export async function releaseRefresh(db: Queryable, connection_id: string, holder: string): Promise<void> {
  await db.query(
    `update connection_grants set refreshing = null, refreshing_until = null
     where connection_id = $1 and refreshing = $2`,
    [connection_id, holder],
    'connection-grant-release',
  );
}

/**
 * Stores the vendor's answer to a refresh, as long as the stored tokens are the ones that were refreshed, even after
 * the lease has expired: the vendor may have invalidated the old ones. Returns `revived` when another process had
 * marked the old tokens as refused, and `late` when they have been replaced.
 */
export async function writeRefreshed(
  { db, texts }: Grants,
  kept: KeptGrant,
  { grant, after_refusal }: { grant: OAuthGrant; after_refusal: boolean },
): Promise<'stored' | 'revived' | 'late'> {
  const { username, display_name, avatar_url, refresh_token } = kept;
  const text = sealedOf(grant, { username, display_name, avatar_url, refresh_token });
  const { key_id, sealed } = await texts.seal(subjectOf(kept), text, contextOf(kept.connection_id));
  const [row] = await db.query<{ was_dead: boolean }>(
    `with before as (
       select dead from connection_grants where connection_id = $1 and generation = $2 for update)
     update connection_grants g
     set key_id = $3, sealed = $4, expires_at = to_timestamp($5 / 1000.0), after_refusal = $6,
       scopes = coalesce($7, scopes), generation = generation + 1, stored_at = clock_timestamp(), dead = false,
       refreshing = null, refreshing_until = null
     from before where g.connection_id = $1 returning before.dead as was_dead`,
    [kept.connection_id, kept.generation, key_id, sealed, grant.expires_at, after_refusal, grant.scopes],
    'connection-grant-refreshed',
  );
  if (row === undefined) return 'late';
  return row.was_dead ? 'revived' : 'stored';
}

/**
 * Marks tokens that the vendor refuses for good, so that they are not sent again. Returns false when they have been
 * replaced.
 */
export async function markDead(
  db: Queryable,
  { connection_id, generation }: Pick<KeptGrant, 'connection_id' | 'generation'>,
): Promise<boolean> {
  const rows = await db.query(
    `update connection_grants set dead = true, refreshing = null, refreshing_until = null
     where connection_id = $1 and generation = $2 returning 1 as one`,
    [connection_id, generation],
    'connection-grant-dead',
  );
  return rows.length > 0;
}

/** Clears the marks of refused tokens, so that they are tried again. */
export async function revive(db: Queryable, connection_id: string): Promise<void> {
  await db.query(
    'update connection_grants set dead = false, after_refusal = false where connection_id = $1 and dead',
    [connection_id],
    'connection-grant-revive',
  );
}

/** Names of the grants' owners at their vendors, by connection; absent without a grant and after an erasure. */
export async function grantNames(
  { db, texts }: Grants,
  connection_ids: readonly string[],
): Promise<Map<string, Pick<Sealed, 'username' | 'display_name' | 'avatar_url'>>> {
  const rows = await db.query<{ connection_id: string; key_id: string; sealed: string }>(
    'select connection_id, key_id, sealed from connection_grants where connection_id = any($1::uuid[])',
    [connection_ids],
    'connection-grant-names',
  );
  const opened = await texts.openAll(rows.map((row) => ({ ...row, context: contextOf(row.connection_id) })));
  return new Map(
    rows.flatMap(({ connection_id }, index) => {
      const text = opened[index];
      if (text === null || text === undefined) return [];
      const { username, display_name, avatar_url } = Sealed.parse(JSON.parse(text));
      return [[connection_id, { username, display_name, avatar_url }] as const];
    }),
  );
}

/** Deletes a grant with its tokens. */
export async function dropGrant(db: Queryable, connection_id: string): Promise<void> {
  await db.query('delete from connection_grants where connection_id = $1', [connection_id], 'connection-grant-drop');
}

/**
 * Stores the vendor's subscriptions that deliver a channel's events, for every account that connected it with this app.
 * Null while they are being created: an event may then arrive before its subscription's id is stored.
 */
export async function writeSubscriptions(
  db: Pick<Queryable, 'query'>,
  { platform, platform_user_id, client_id }: Pick<KeptGrant, 'platform' | 'platform_user_id' | 'client_id'>,
  ids: readonly string[] | null,
): Promise<void> {
  await db.query(
    `update connection_grants set subscriptions = $4
     where platform = $1 and platform_user_id = $2 and client_id = $3 and kind = 'channel'`,
    [platform, platform_user_id, client_id, ids],
    'connection-grant-subscriptions',
  );
}

const MAX_PROBLEM = 500;

/**
 * Stores a sentence for the account about event types that the vendor refuses to deliver; null when it delivers all.
 */
export async function writeSubscriptionProblem(
  db: Pick<Queryable, 'query'>,
  { platform, platform_user_id, client_id }: Pick<KeptGrant, 'platform' | 'platform_user_id' | 'client_id'>,
  problem: string | null,
): Promise<void> {
  await db.query(
    `update connection_grants set subscription_problem = $4
     where platform = $1 and platform_user_id = $2 and client_id = $3 and kind = 'channel'
       and subscription_problem is distinct from $4`,
    [platform, platform_user_id, client_id, problem?.slice(0, MAX_PROBLEM) ?? null],
    'connection-grant-problem',
  );
}

/** Kinds of the other grants for the same channel or user by the same app, one per grant. */
export async function otherGrants(
  db: Pick<Queryable, 'query'>,
  { connection_id, platform, platform_user_id, client_id }: KeptGrant,
): Promise<string[]> {
  const rows = await db.query<{ kind: string }>(
    `select kind from connection_grants
     where platform = $1 and platform_user_id = $2 and client_id = $3 and connection_id <> $4`,
    [platform, platform_user_id, client_id, connection_id],
    'connection-grants-others',
  );
  return rows.map(({ kind }) => kind);
}

/**
 * Deletes grants without a connection after 7 days: of a login that was never completed, or of a revocation that kept
 * failing at the vendor. Returns the number deleted.
 */
export async function sweepGrants(db: Queryable): Promise<number> {
  const rows = await db.query(
    `delete from connection_grants g where stored_at < now() - interval '7 days'
       and not exists (select 1 from channel_connections c where c.id = g.connection_id)
       and not exists (select 1 from bot_connections c where c.id = g.connection_id)
       and not exists (select 1 from system_connections s where s.bot_connection_id = g.connection_id)
     returning 1 as one`,
  );
  return rows.length;
}
