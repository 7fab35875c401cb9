import type { Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';

/** Somebody whom an account's chats know. */
export interface KnownPerson {
  platform_user_id: string | null;
  username: string | null;
  display_name: string | null;
  avatar_url: string | null;
  /** Of their newest message. */
  roles: readonly string[];
}

export interface KnownMessage {
  text: string;
  author: KnownPerson | null;
}

const PERSON = 'u.platform_user_id, u.username, u.display_name, u.avatar_url, u.roles';

/** A person by the platform's id; null where the account's chats do not know them. */
export async function personOf(
  db: Pick<Queryable, 'query'>,
  { account_id, platform, platform_user_id }: { account_id: string; platform: Platform; platform_user_id: string },
): Promise<KnownPerson | null> {
  const [row] = await db.query<KnownPerson & Record<string, unknown>>(
    `select ${PERSON} from platform_users u
     where u.account_id = $1 and u.platform = $2 and u.platform_user_id = $3 order by u.last_seen_at desc limit 1`,
    [account_id, platform, platform_user_id],
    'chat-person',
  );
  return row ?? null;
}

/** A message of the account's history by the platform's id, with its author; null where it is not there. */
export async function messageOf(
  db: Pick<Queryable, 'query'>,
  { account_id, platform, message_id }: { account_id: string; platform: Platform; message_id: string },
): Promise<KnownMessage | null> {
  const [row] = await db.query<KnownPerson & { text: string } & Record<string, unknown>>(
    `select m.message as text, ${PERSON}
     from platform_chat_messages m
       left join platform_users u on u.account_id = m.account_id and u.person_key = m.person_key
     where m.account_id = $1 and m.platform = $2 and m.message_id = $3 order by m.place limit 1`,
    [account_id, platform, message_id],
    'chat-message-of',
  );
  if (row === undefined) return null;
  const { text, ...author } = row;
  return { text, author: author.platform_user_id === null ? null : author };
}

/** The platform's id of a person's ban that was made here and not taken back; null without one. */
export async function banOf(
  db: Pick<Queryable, 'query'>,
  { account_id, platform, platform_user_id }: { account_id: string; platform: Platform; platform_user_id: string },
): Promise<string | null> {
  const [row] = await db.query<{ ban_id: string | null }>(
    `select content ->> 'ban_id' as ban_id from moderation_log
     where account_id = $1 and platform = $2 and content ->> 'target_user_id' = $3
       and (action in ('unban', 'untimeout') or content ->> 'ban_id' is not null)
     order by place desc limit 1`,
    [account_id, platform, platform_user_id],
    'chat-ban-of',
  );
  return row?.ban_id ?? null;
}
