import type { Queryable } from '../../engines/postgres/port';
import type { ChatEntry } from './chat';
import { authorKey } from './chat-messages';

const COLUMNS = `account_id, person_key, platform, platform_user_id, username, display_name, avatar_url, roles,
  first_seen_at, last_seen_at, message_count, own_messages`;
/** Ordered, so that no two writers deadlock. Names that a later message does not tell stay. */
const COUNT = `
  insert into platform_users as u (${COLUMNS})
  select account_id, person_key, platform, platform_user_id, username, display_name, avatar_url, roles,
    first_seen_at, last_seen_at, message_count, own_messages
  from json_to_recordset($1::json) as p (account_id uuid, person_key uuid, platform text, platform_user_id text,
    username text, display_name text, avatar_url text, roles text[], first_seen_at timestamptz,
    last_seen_at timestamptz, message_count bigint, own_messages bigint)
  order by account_id, person_key
  on conflict (account_id, person_key) do update set
    platform_user_id = coalesce(excluded.platform_user_id, u.platform_user_id),
    username = coalesce(excluded.username, u.username), display_name = coalesce(excluded.display_name, u.display_name),
    avatar_url = coalesce(excluded.avatar_url, u.avatar_url),
    roles = case when excluded.platform_user_id is null then u.roles else excluded.roles end,
    first_seen_at = least(u.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(u.last_seen_at, excluded.last_seen_at),
    message_count = u.message_count + excluded.message_count, own_messages = u.own_messages + excluded.own_messages
  returning account_id, person_key, own_messages`;

interface AuthorRow {
  account_id: string;
  person_key: string;
  platform: string;
  platform_user_id: string | null;
  username: string | null;
  display_name: string | null;
  avatar_url: string | null;
  roles: readonly string[];
  first_seen_at: string;
  first_micros: number;
  last_seen_at: string;
  last_micros: number;
  message_count: number;
  own_messages: number;
  /** Id of their first message here in one of the account's own rooms. */
  first_id: string | null;
}

/**
 * Counts the messages of their authors, and keeps the authors' newest names. A record that an erasure made unreadable
 * still counts, so that a rebuild makes the same counts.
 * @returns the ids of messages that are their author's first in the account's own rooms
 */
export async function countAuthors(entries: readonly ChatEntry[], tx: Queryable): Promise<Set<string>> {
  const authors = new Map<string, AuthorRow>();
  for (const entry of entries) {
    const { read, account_id, id, created_at, micros } = entry;
    const person_key = authorKey(entry);
    if (person_key === null || (read !== null && read.kind !== 'message')) continue;
    const key = `${account_id} ${person_key}`;
    const author = authors.get(key) ?? unnamed(entry, person_key);
    authors.set(key, author);
    author.message_count += 1;
    if (read === null || read.shared_chat === null) {
      author.own_messages += 1;
      author.first_id ??= id;
    }
    if (micros < author.first_micros) [author.first_seen_at, author.first_micros] = [created_at, micros];
    if (micros > author.last_micros) [author.last_seen_at, author.last_micros] = [created_at, micros];
    if (read?.author) {
      author.platform_user_id = read.author.id!;
      for (const name of ['username', 'display_name', 'avatar_url'] as const) {
        const value = read.author[name];
        if (value !== null) author[name] = value;
      }
      author.roles = read.roles;
    }
  }
  if (authors.size === 0) return new Set();
  const rows = await tx.query<{ account_id: string; person_key: string; own_messages: number }>(
    COUNT,
    [JSON.stringify([...authors.values()])],
    'chat-authors',
  );
  const firsts = rows.flatMap(({ account_id, person_key, own_messages }) => {
    const { own_messages: here, first_id } = authors.get(`${account_id} ${person_key}`)!;
    return first_id !== null && Number(own_messages) === here ? [first_id] : [];
  });
  return new Set(firsts);
}

const unnamed = ({ account_id, record, created_at, micros }: ChatEntry, person_key: string): AuthorRow => ({
  account_id,
  person_key,
  platform: record.platform,
  platform_user_id: null,
  username: null,
  display_name: null,
  avatar_url: null,
  roles: [],
  first_seen_at: created_at,
  first_micros: micros,
  last_seen_at: created_at,
  last_micros: micros,
  message_count: 0,
  own_messages: 0,
  first_id: null,
});
