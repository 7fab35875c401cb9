import { type Queryable, textArray } from '../../engines/postgres/port';
import { NotSent } from '../../kernel/job';
import type { Platform } from '../../domain/common/vendors';

/** Platforms with a call that answers whether somebody follows a channel. */
export const FOLLOWERS_TOLD: ReadonlySet<string> = new Set<Platform>(['twitch', 'trovo']);
/** Time for which the platform's answer is remembered. */
const REMEMBERED = `interval '24 hours'`;

/** Somebody in the chats of an account. */
export interface ChatAuthor {
  account_id: string;
  platform: string;
  platform_user_id: string;
  /** Id of their key. */
  person_key: string;
}

const authorKey = ({ account_id, platform, platform_user_id }: ChatAuthor) =>
  `${account_id} ${platform} ${platform_user_id}`;

/**
 * Whether authors follow: by a stored follow, else by the platform's remembered answer. Undefined where the platform
 * is to be asked.
 */
export async function knownFollowers(
  db: Pick<Queryable, 'query'>,
  authors: readonly ChatAuthor[],
): Promise<(author: ChatAuthor) => boolean | undefined> {
  if (authors.length === 0) return () => undefined;
  const rows = await db.query<ChatAuthor & { follows: boolean | null } & Record<string, unknown>>(
    `select a.account_id, a.platform, a.platform_user_id,
       case when exists (select from platform_event_logs e where e.account_id = a.account_id
           and e.user_id = a.platform_user_id and e.type = a.platform || ':follower') then true
         else (select coalesce(d.is_follower, false) from platform_user_details d
           where d.account_id = a.account_id and d.person_key = a.person_key
             and d.enriched_at > now() - ${REMEMBERED}) end as follows
     from (select unnest($1::text[])::uuid as account_id, unnest($2::text[]) as platform,
       unnest($3::text[]) as platform_user_id, unnest($4::text[])::uuid as person_key) a`,
    [
      ...[textArray(authors.map(({ account_id }) => account_id)), textArray(authors.map(({ platform }) => platform))],
      textArray(authors.map(({ platform_user_id }) => platform_user_id)),
      textArray(authors.map(({ person_key }) => person_key)),
    ],
    'known-followers',
  );
  const known = new Map(rows.map((row) => [authorKey(row), row.follows]));
  return (author) => {
    const follows = known.get(authorKey(author));
    if (follows !== null) return follows;
    return FOLLOWERS_TOLD.has(author.platform) ? undefined : false;
  };
}

/** Longest time of a look-up. */
const LOOK_UP = `interval '10 seconds'`;

/** Whether a look-up of the author may still be running; one that failed counts as running for this time. */
export async function isLookedUp(
  db: Pick<Queryable, 'query'>,
  { account_id, person_key }: Pick<ChatAuthor, 'account_id' | 'person_key'>,
): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from platform_user_details d where d.account_id = $1 and d.person_key = $2
       and d.tried_at > clock_timestamp() - ${LOOK_UP} and (d.enriched_at is null or d.enriched_at < d.tried_at)`,
    [account_id, person_key],
    'author-looked-up',
  );
  return rows.length > 0;
}

/**
 * Key of an author whose profile the chats have.
 * @throws NotSent while the projection of chats has not stored it
 */
export async function keyOfAuthor(
  db: Pick<Queryable, 'query'>,
  { account_id, platform, platform_user_id }: Omit<ChatAuthor, 'person_key'>,
): Promise<string> {
  const [row] = await db.query<{ person_key: string }>(
    `select person_key from platform_users where account_id = $1 and platform = $2 and platform_user_id = $3
     order by last_seen_at desc limit 1`,
    [account_id, platform, platform_user_id],
    'author-key',
  );
  if (row === undefined) throw new NotSent('the profile of the author is not stored yet');
  return row.person_key;
}
