import { type ChatHistoryMessage, LATE_MICROS } from '../../domain/chat/chat-history';
import type { ChatPart } from '../../domain/chat/chat-messages';
import { emotesIn } from '../../domain/chat/chat-push';
import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { literal, Parameters } from '../../kernel/sql';
import type { Way } from '../../kernel/operations/pages';

/** Filter of an account's chat messages. Instants are RFC 3339 UTC: `from` is included, `to` is not. */
export interface ChatFilter {
  account_id: string;
  platforms: readonly Platform[] | null;
  /** Keys of the authors ({@link authorsOf}); null: anybody. */
  person_keys: readonly string[] | null;
  from: string | null;
  to: string | null;
  live_chat_id: string | null;
  deleted: boolean | null;
  paid: boolean | null;
}

/** Conditions on the content of messages, for which each message must be looked at. */
export interface TextFilter {
  /** Part of the text, whatever its case; null: any. */
  part: string | null;
  has_link: boolean;
  has_emote: boolean;
}

/** Rows in the order of their places, read from where another page ended. */
export interface Reading {
  filter: ChatFilter;
  text: TextFilter | null;
  way: Way;
  /** Place that the rows lie behind; null: the newest rows. */
  from_place: number | null;
  /** Most rows that match, and most rows that are searched for them. */
  limit: number;
  window: number;
}

export interface Looked {
  rows: MessageRow[];
  /** Place of the last row that was looked through; null at the end. */
  looked_to: number | null;
}

export interface MessageRow {
  place: number;
  id: string;
  account_id: string;
  platform: Platform;
  created_at: string;
  message_id: string | null;
  live_chat_id: string | null;
  message: string;
  content: string | null;
  is_first: boolean;
  deleted_at: string | null;
  deleted_by: string | null;
  author_id: string | null;
  author_username: string | null;
  author_display_name: string | null;
  author_avatar_url: string | null;
}

const DELETE_OF = `l.account_id = m.account_id and l.platform = m.platform and l.message_id = m.message_id
  and l.effect = 'delete'`;
const CLEAR_OF = `l.account_id = m.account_id and l.person_key = m.person_key and l.effect = 'clear'
  and l.created_at >= m.created_at`;
/** Name of the moderator of the act, from the first of its reports that names them. */
const MODERATOR_OF = `coalesce(l.content ->> 'moderator_name', (
  select t.content ->> 'moderator_name' from moderation_log t
  where (t.id = coalesce(l.twin_of, l.id) or t.twin_of = coalesce(l.twin_of, l.id))
    and t.content ->> 'moderator_name' is not null
  order by t.place limit 1))`;

/** Looks through at most `window` messages for those that match. */
export async function lookThrough(db: Queryable, reading: Reading): Promise<Looked> {
  const { filter, text, way, limit, window, from_place } = reading;
  const p = new Parameters();
  const order = way === 'older' ? 'desc' : 'asc';
  const looked = lookedAt(reading, p, 'm.*');
  const rows = await db.query<MessageRow & { looked: number; last: number | null }>(
    `with looked as materialized (${looked}), found as (
       select m.*, least(d.created_at, c.created_at) as deleted_at,
         case when c.created_at < d.created_at or d.created_at is null then c.by else d.by end as deleted_by,
         u.platform_user_id as author_id, u.username as author_username, u.display_name as author_display_name,
         u.avatar_url as author_avatar_url
       from looked m
         left join lateral (select l.created_at, ${MODERATOR_OF} as by from moderation_log l
           where ${DELETE_OF} order by l.place limit 1) d on true
         left join lateral (select l.created_at, ${MODERATOR_OF} as by from moderation_log l
           where ${CLEAR_OF} order by l.created_at limit 1) c on true
         left join platform_users u
           on m.content is null and u.account_id = m.account_id and u.person_key = m.person_key
       where ${textConditions(text, p)} order by m.place ${order} limit ${p.add(limit)}::bigint
     )
     select found.*, counted.looked, counted.last
     from (select count(*) as looked, ${way === 'older' ? 'min' : 'max'}(place) as last from looked) counted
       left join found on true order by found.place ${order}`,
    p.values,
    isPlain(filter) && text === null ? `chat-${way}-${from_place === null ? 'end' : 'from'}` : undefined,
  );
  const found = rows.filter(({ id }) => id !== null);
  if (found.length === limit) return { rows: found, looked_to: found.at(-1)!.place };
  return { rows: found, looked_to: rows[0]!.looked < window ? null : rows[0]!.last };
}

/** Counts the messages that match among at most `window`. */
export async function countThrough(
  db: Queryable,
  reading: Omit<Reading, 'limit' | 'way'>,
): Promise<{ count: number; looked_to: number | null }> {
  const p = new Parameters();
  const looked = lookedAt({ ...reading, way: 'older' }, p, 'm.place, m.message, m.has_link, m.has_emote');
  const [row] = await db.query<{ count: number; looked: number; last: number | null }>(
    `with looked as materialized (${looked})
     select count(*) filter (where ${textConditions(reading.text, p)}) as count, count(*) as looked,
       min(place) as last from looked m`,
    p.values,
  );
  return { count: row!.count, looked_to: row!.looked < reading.window ? null : row!.last };
}

/** Number of messages by the counts of days. */
export async function countAll(
  db: Queryable,
  { account_id, platforms }: Pick<ChatFilter, 'account_id' | 'platforms'>,
): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select coalesce(sum(count), 0)::bigint as count from chat_message_counts
     where account_id = $1 and platform = any($2)`,
    [account_id, platforms ?? PLATFORMS],
    'chat-count',
  );
  return row!.count;
}

/** Whether the filter takes all messages of an account. */
const isPlain = ({ account_id: _account, ...filter }: ChatFilter): boolean =>
  Object.values(filter).every((value) => value === null);

/** Whether the counts of days answer the filter. */
export const isCounted = (filter: ChatFilter): boolean => isPlain({ ...filter, platforms: null });

function textConditions(text: TextFilter | null, p: Parameters): string {
  const conditions = [
    ...(text?.part ? [`m.message ilike ${p.add(`%${literal(text.part)}%`)}`] : []),
    ...(text?.has_link ? ['m.has_link'] : []),
    ...(text?.has_emote ? ['m.has_emote'] : []),
  ];
  return conditions.length === 0 ? 'true' : conditions.join(' and ');
}

const IS_DELETED = `exists (select from moderation_log l where ${DELETE_OF})`;
/** Sources of deleted messages: each deleted alone, then those of people who were banned or timed out after them. */
const DELETED = [
  {
    from: () => 'platform_chat_messages m',
    where: (account: string) => `m.message_id in (
      select l.message_id from moderation_log l where l.account_id = ${account} and l.effect = 'delete')
      and ${IS_DELETED}`,
  },
  {
    from: (account: string) => `(
      select l.person_key, max(l.created_at) as cleared_at from moderation_log l
      where l.account_id = ${account} and l.effect = 'clear' group by l.person_key
    ) cleared join platform_chat_messages m using (person_key)`,
    where: () => `m.created_at <= cleared.cleared_at and not ${IS_DELETED}`,
  },
];

/** Rows that a reading searches, from sources of which no two yield the same row. */
function lookedAt(reading: Omit<Reading, 'limit'>, p: Parameters, columns: string): string {
  const { filter, way, from_place, window } = reading;
  const account = p.add(filter.account_id);
  const conditions: string[] = [];
  if (from_place !== null) conditions.push(`m.place ${way === 'older' ? '<' : '>'} ${p.add(from_place)}::bigint`);
  if (filter.live_chat_id !== null) conditions.push(`m.live_chat_id = ${p.add(filter.live_chat_id)}`);
  if (filter.paid !== null) conditions.push(filter.paid ? 'm.is_paid' : 'not m.is_paid');
  const [from, to] = [filter.from, filter.to].map((at) => (at === null ? null : `${p.add(at)}::timestamptz`));
  if (from) conditions.push(`m.created_at >= ${from}`);
  if (to) conditions.push(`m.created_at < ${to}`);
  if (filter.deleted === false) {
    conditions.push(`not ${IS_DELETED}`);
    conditions.push(`not exists (select from moderation_log l where ${CLEAR_OF})`);
  }
  const order = `order by m.place ${way === 'older' ? 'desc' : 'asc'} limit ${p.add(window)}::bigint`;
  const ofPlatforms = () => (filter.platforms === null ? [] : [`m.platform = any(${p.add(filter.platforms)}::text[])`]);
  const select = (from_clause: string, ...more: string[]) =>
    `(select ${columns} from ${from_clause} where ${[`m.account_id = ${account}`, ...more, ...conditions].join(' and ')}
      ${order})`;
  const union = (sources: readonly string[]) => `select * from (${sources.join(' union all ')}) m ${order}`;
  const messages = 'platform_chat_messages m';

  const { person_keys } = filter;
  const people = () => `m.person_key = any(${p.add(person_keys)}::uuid[])`;
  if (filter.deleted === true) {
    const narrowed = person_keys === null ? ofPlatforms() : [people(), ...ofPlatforms()];
    return union(DELETED.map(({ from: of, where }) => select(of(account), where(account), ...narrowed)));
  }
  if (person_keys !== null) {
    const one = select(messages, 'm.person_key = asked.person_key', ...ofPlatforms());
    const asked = `unnest(${p.add(person_keys)}::uuid[]) asked (person_key)`;
    return `select m.* from ${asked} cross join lateral ${one} m ${order}`;
  }
  if (filter.live_chat_id !== null) return union([select(messages, ...ofPlatforms())]);
  const platforms = (filter.platforms ?? PLATFORMS).map((platform) => `m.platform = '${platform}'`);
  if (!from && !to) return union(platforms.map((platform) => select(messages, platform)));
  const places = [
    ...(from ? [`m.place >= (extract(epoch from ${from}) * 1000000)::bigint - ${LATE_MICROS}`] : []),
    ...(to ? [`m.place < (extract(epoch from ${to}) * 1000000)::bigint + ${LATE_MICROS}`] : []),
  ];
  return union(
    platforms.flatMap((platform) => [
      select(messages, platform, 'not m.is_late', ...places),
      select(messages, platform, 'm.is_late'),
    ]),
  );
}

/** Keys of the authors with this id on one of the platforms. */
export async function authorsOf(
  db: Queryable,
  { account_id, platforms }: Pick<ChatFilter, 'account_id' | 'platforms'>,
  platform_user_id: string,
): Promise<string[]> {
  const rows = await db.query<{ person_key: string }>(
    `select person_key from platform_users where account_id = $1 and platform = any($2) and platform_user_id = $3`,
    [account_id, platforms ?? PLATFORMS, platform_user_id],
    'chat-authors-by-id',
  );
  return rows.map(({ person_key }) => person_key);
}

/** Keys of at most 100 authors with exactly this login, or a display name that begins so, whatever the case. */
export async function authorsNamed(db: Queryable, account_id: string, name: string): Promise<string[]> {
  const rows = await db.query<{ person_key: string }>(
    `select person_key from platform_users where account_id = $1
       and (lower(username) = lower($2) or display_name ilike $3) order by last_seen_at desc limit 100`,
    [account_id, name, `${literal(name)}%`],
    'chat-authors-named',
  );
  return rows.map(({ person_key }) => person_key);
}

/** The place of a message; undefined of one that the account does not have. */
export async function placeOf(db: Queryable, account_id: string, id: string): Promise<number | undefined> {
  const [row] = await db.query<{ place: number }>(
    'select place from platform_chat_messages where id = $2 and account_id = $1',
    [account_id, id],
    'chat-place',
  );
  return row?.place;
}

type Content = Partial<Omit<ChatHistoryMessage, 'parts'>> & { parts?: ChatPart[] };

/** A message as answers show it. */
export function shownRow(row: MessageRow): ChatHistoryMessage {
  const content = (row.content === null ? {} : JSON.parse(row.content)) as Content;
  const { parts = [] } = content;
  const name = row.author_username ?? row.author_display_name ?? '';
  return {
    id: row.id,
    account_id: row.account_id,
    platform: row.platform,
    channel_id: content.channel_id ?? null,
    platform_message_id: row.message_id,
    live_chat_id: row.live_chat_id,
    platform_user_id: content.platform_user_id ?? row.author_id,
    username: content.username ?? name,
    display_name: content.display_name ?? row.author_display_name ?? name,
    avatar_url: content.avatar_url ?? row.author_avatar_url,
    message: row.message,
    message_type: content.message_type ?? 'text',
    system_message: content.system_message ?? null,
    parts,
    emotes: emotesIn(parts),
    badges: content.badges ?? [],
    roles: content.roles ?? [],
    color: content.color ?? null,
    action: content.action ?? false,
    paid: content.paid ?? null,
    reward_id: content.reward_id ?? null,
    reply_to_message_id: content.reply_to_message_id ?? null,
    reply_to_user_id: content.reply_to_user_id ?? null,
    reply_to_username: content.reply_to_username ?? null,
    reply_to_message: content.reply_to_message ?? null,
    is_shared_chat: content.is_shared_chat ?? false,
    source_channel: content.source_channel ?? null,
    is_first_message: row.is_first,
    is_erased: row.content === null,
    deleted_at: row.deleted_at,
    deleted_by: row.deleted_by,
    created_at: row.created_at,
  };
}
