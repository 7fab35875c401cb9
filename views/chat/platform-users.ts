import { z } from 'zod';
import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { literal } from '../../kernel/sql';

/** Somebody in an account's chats. Source: spec doc2 §2.10. */
export const PlatformUserSearchResult = z
  .object({
    platform: z.enum(PLATFORMS),
    platform_user_id: z.string(),
    username: z.string().nullable(),
    display_name: z.string().nullable(),
    avatar_url: z.string().nullable(),
    last_seen_at: z.iso.datetime(),
    message_count: z.int().min(0).describe("Their messages in the account's chats"),
  })
  .meta({ id: 'GqlPlatformUserSearchResult' });
export type PlatformUserSearchResult = z.output<typeof PlatformUserSearchResult>;

/** People of an account whose login or display name has this part, whatever its case; last seen first. */
export function searchPeople(
  db: Queryable,
  asked: { account_id: string; part: string; platforms: readonly Platform[]; limit: number },
): Promise<PlatformUserSearchResult[]> {
  return db.query<PlatformUserSearchResult>(
    `select platform, platform_user_id, username, display_name, avatar_url, last_seen_at, message_count
     from platform_users
     where account_id = $1 and platform = any($2) and platform_user_id is not null
       and (username ilike $3 or display_name ilike $3)
     order by last_seen_at desc, message_count desc, person_key limit $4`,
    [asked.account_id, asked.platforms, `%${literal(asked.part)}%`, asked.limit],
    'platform-users-search',
  );
}
