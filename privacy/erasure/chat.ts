import { ERASED_ACT } from '../../domain/chat/chat-history';
import { erasedPush } from '../../domain/chat/chat-push';
import { TOPICS } from '../../domain/common/records';
import type { Queryable } from '../../engines/postgres/port';
import type { RecordEraser } from '../../kernel/eraser';
import { deletingMessages } from '../../maintenance/retention/deleted-messages';
import { keepUsesOfMessages, keepUsesOfPersons } from './erased-uses';

const DELETE_MESSAGES = deletingMessages(
  'select account_id, platform, place from platform_chat_messages where id = any($1::uuid[])',
  { are_erased: true },
);
const DROP_EMPTY_DAYS = 'delete from chat_message_counts where account_id = any($1::uuid[]) and count = 0';
const EMPTY_MESSAGES = `
  update platform_chat_messages set message_id = null, live_chat_id = null, message = '', content = null,
    is_paid = false, has_link = false, has_emote = false
  where id = any($1::uuid[]) and content is not null returning 1 as one`;
/** As a rebuild makes them of records that nobody can read: each is an entry of its own. */
const EMPTY_ACTS = `
  update moderation_log set action = '${ERASED_ACT}', person_key = null, message_id = null, effect = null,
    is_listed = true, twin_of = null, content = '{}'
  where id = any($1::uuid[]) and action <> '${ERASED_ACT}' returning 1 as one`;
/** The first record that repeated an emptied act is an entry from now on. */
const SUCCEED = `
  with heirs as (
    select distinct on (twin_of) id, twin_of from moderation_log
    where twin_of = any($1::uuid[]) order by twin_of, place
  )
  update moderation_log l set is_listed = l.id = h.id, twin_of = case when l.id <> h.id then h.id end
  from heirs h where l.twin_of = h.twin_of`;
const UNNAME = `
  update platform_users set platform_user_id = null, username = null, display_name = null, avatar_url = null,
    roles = '{}', identity_hash = null
  where person_key = any($1::uuid[]) and platform_user_id is not null returning 1 as one`;

/**
 * Erases a person from the chats: messages by them are deleted, messages that name them keep their time and author, and
 * entries of the moderation log their time. Their counts stay, without names.
 */
export const chatLiveEraser: RecordEraser = {
  projection: 'chat-live',
  topic: TOPICS.chat_events,
  tables: [
    'platform_chat_messages',
    'chat_minute_counts',
    'moderation_log',
    'platform_users',
    'platform_user_details',
    'platform_user_refreshes',
  ],
  async erase(tx, records) {
    const own = records.filter(({ subject_erased }) => subject_erased === true);
    const all = records.map(({ id }) => id);
    await keepUsesOfMessages(tx, all);
    const [gone] = await tx.query<{ count: number }>(DELETE_MESSAGES, [own.map(({ id }) => id)]);
    const emptied = await tx.query(EMPTY_MESSAGES, [all]);
    const acts = await tx.query(EMPTY_ACTS, [all]);
    if (acts.length > 0) await tx.query(SUCCEED, [all]);
    const unnamed = await unname(tx, [...new Set(own.flatMap(({ subject_key }) => subject_key ?? []))]);
    if (gone!.count > 0) await tx.query(DROP_EMPTY_DAYS, [[...new Set(own.map(({ account_id }) => account_id))]]);
    return gone!.count + emptied.length + acts.length + unnamed;
  },
  messages: (_tx, record_ids) => Promise.resolve(new Map(record_ids.map((id) => [id, erasedPush(id)]))),
};

/** Takes the names and details of persons off their counts. Returns the number of persons' rows and of cooldowns. */
export async function unname(tx: Queryable, person_keys: readonly string[]): Promise<number> {
  if (person_keys.length === 0) return 0;
  await tx.query('delete from platform_user_details where person_key = any($1::uuid[])', [person_keys]);
  const refreshes = 'delete from platform_user_refreshes where person_key = any($1::uuid[]) returning 1 as one';
  const cooldowns = await tx.query(refreshes, [person_keys]);
  await keepUsesOfPersons(tx, person_keys);
  await tx.query(
    'update chat_minute_counts set emotes = null where person_key = any($1::uuid[]) and emotes is not null',
    [person_keys],
  );
  return (await tx.query(UNNAME, [person_keys])).length + cooldowns.length;
}
