import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';
import type { PersonHere } from '../../services/chat/person-profiles';
import { PlatformUserSearchResult } from './platform-users';

const time = z.iso.datetime().nullable();

const ProfileBan = z
  .object({
    action: z.enum(['ban', 'timeout']),
    reason: z.string().nullable(),
    moderator_name: z.string().nullable(),
    ends_at: time.describe('Null: for ever'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'GqlProfileBan' });

/** Somebody on a platform, as an account's chats and the platform show them. Source: spec extra facts §11. */
export const UnifiedProfile = PlatformUserSearchResult.omit({ last_seen_at: true })
  .extend({
    bio: z.string().nullable(),
    account_created_at: time,
    broadcaster_type: z.string().nullable(),
    is_follower: z.boolean().nullable().describe('Null where the platform does not say'),
    followed_at: time,
    is_moderator: z.boolean().describe('Like the two below, by their newest message'),
    is_subscriber: z.boolean().describe('Or by the platform, where it was asked later'),
    is_vip: z.boolean(),
    first_seen_at: time,
    last_seen_at: time,
    ban: ProfileBan.nullable().describe('By the newest act of the moderation log; null where the person is not banned'),
    enriched_at: time.describe('When the platform was asked last; null: never'),
  })
  .meta({ id: 'GqlUnifiedProfile' });
export type UnifiedProfile = z.output<typeof UnifiedProfile>;

/** The profile of a person; one whom the chats do not know has an empty one. */
export async function profileOf(
  db: Pick<Queryable, 'query'>,
  { account_id, platform, platform_user_id }: PersonHere,
): Promise<UnifiedProfile> {
  const [row] = await db.query<Omit<UnifiedProfile, 'ban'> & { ban: string | null } & Record<string, unknown>>(
    `select u.platform, u.platform_user_id, u.username, u.display_name,
       coalesce(d.avatar_url, u.avatar_url) as avatar_url, d.description as bio, d.account_created_at, d.broadcaster_type,
       d.is_follower, d.followed_at, 'moderator' = any(u.roles) as is_moderator,
       coalesce(case when d.enriched_at > u.last_seen_at then d.is_subscriber end,
         u.roles && '{subscriber,founder}') as is_subscriber, 'vip' = any(u.roles) as is_vip, u.message_count,
       u.first_seen_at, u.last_seen_at, d.enriched_at,
       case when b.is_banned then json_build_object('action', b.action, 'reason', b.reason,
         'moderator_name', b.moderator_name, 'ends_at', b.ends_at, 'created_at', b.created_at) end as ban
     from platform_users u
       left join platform_user_details d on d.account_id = u.account_id and d.person_key = u.person_key
       left join lateral (
         select l.action, l.content ->> 'reason' as reason, l.content ->> 'moderator_name' as moderator_name,
           l.content ->> 'ends_at' as ends_at, l.content ->> 'created_at' as created_at,
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
  if (row === undefined) return { ...NOBODY, platform, platform_user_id };
  return { ...row, ban: row.ban === null ? null : (JSON.parse(row.ban) as UnifiedProfile['ban']) };
}

const NOBODY: Omit<UnifiedProfile, 'platform' | 'platform_user_id'> = {
  ...{ username: null, display_name: null, avatar_url: null, bio: null, account_created_at: null },
  ...{ broadcaster_type: null, is_follower: null, followed_at: null, is_moderator: false, is_subscriber: false },
  ...{ is_vip: false, message_count: 0, first_seen_at: null, last_seen_at: null },
  ...{ ban: null, enriched_at: null },
};
