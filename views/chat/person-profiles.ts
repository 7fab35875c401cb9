import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';
import type { PersonHere } from '../../services/chat/person-profiles';
import { PlatformUserSearchResult } from './platform-users';

const time = z.iso.datetime().nullable();

/** Somebody on a platform, as an account's chats and the platform show them. Source: spec extra facts §11. */
export const UnifiedProfile = PlatformUserSearchResult.omit({ last_seen_at: true })
  .extend({
    description: z.string().nullable(),
    account_created_at: time,
    broadcaster_type: z.string().nullable(),
    is_follower: z.boolean().nullable().describe('Null where the platform does not say'),
    followed_at: time,
    is_moderator: z.boolean().describe('Like the two below, by their newest message'),
    is_subscriber: z.boolean(),
    is_vip: z.boolean(),
    first_seen_at: time,
    last_seen_at: time,
    is_banned: z.boolean().describe('By the newest act of the moderation log'),
    ban_reason: z.string().nullable(),
    banned_until: time.describe('Null for ever, and where nobody is banned'),
    enriched_at: time.describe('When the platform was asked last; null: never'),
  })
  .meta({ id: 'GqlUnifiedProfile' });
export type UnifiedProfile = z.output<typeof UnifiedProfile>;

/** The profile of a person; one whom the chats do not know has an empty one. */
export async function profileOf(
  db: Pick<Queryable, 'query'>,
  { account_id, platform, platform_user_id }: PersonHere,
): Promise<UnifiedProfile> {
  const [row] = await db.query<UnifiedProfile & Record<string, unknown>>(
    `select u.platform, u.platform_user_id, u.username, u.display_name,
       coalesce(d.avatar_url, u.avatar_url) as avatar_url, d.description, d.account_created_at, d.broadcaster_type,
       d.is_follower, d.followed_at, 'moderator' = any(u.roles) as is_moderator,
       u.roles && '{subscriber,founder}' as is_subscriber, 'vip' = any(u.roles) as is_vip, u.message_count,
       u.first_seen_at, u.last_seen_at, coalesce(b.is_banned, false) as is_banned,
       case when b.is_banned then b.reason end as ban_reason,
       case when b.is_banned then b.ends_at end as banned_until, d.enriched_at
     from platform_users u
       left join platform_user_details d on d.account_id = u.account_id and d.person_key = u.person_key
       left join lateral (
         select l.content ->> 'reason' as reason, (l.content ->> 'ends_at')::timestamptz as ends_at,
           l.action in ('ban', 'timeout')
             and coalesce((l.content ->> 'ends_at')::timestamptz > now(), l.action = 'ban') as is_banned
         from moderation_log l
         where l.account_id = u.account_id and l.person_key = u.person_key and l.is_listed
           and l.action in ('ban', 'timeout', 'unban', 'untimeout')
         order by l.created_at desc limit 1) b on true
     where u.account_id = $1 and u.platform = $2 and u.platform_user_id = $3
     order by u.last_seen_at desc limit 1`,
    [account_id, platform, platform_user_id],
    'unified-profile',
  );
  return row ?? { ...NOBODY, platform, platform_user_id };
}

const NOBODY: Omit<UnifiedProfile, 'platform' | 'platform_user_id'> = {
  ...{ username: null, display_name: null, avatar_url: null, description: null, account_created_at: null },
  ...{ broadcaster_type: null, is_follower: null, followed_at: null, is_moderator: false, is_subscriber: false },
  ...{ is_vip: false, message_count: 0, first_seen_at: null, last_seen_at: null, is_banned: false },
  ...{ ban_reason: null, banned_until: null, enriched_at: null },
};
