import type { ModerationLogEntry } from '../../domain/chat/chat-history';
import type { Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { Parameters } from '../../kernel/sql';
import type { Way } from '../../kernel/operations/pages';

/** Filter of an account's moderation log. Instants are RFC 3339 UTC: `from` is included, `to` is not. */
export interface ModerationFilter {
  account_id: string;
  platforms: readonly Platform[] | null;
  actions: readonly string[] | null;
  /** The platform's ids. */
  target_user_id: string | null;
  moderator_id: string | null;
  from: string | null;
  to: string | null;
}

interface EntryRow {
  place: number;
  id: string;
  account_id: string;
  platform: Platform;
  action: string;
  created_at: string;
  content: string;
  /** Contents of the records that repeat the act. */
  repeated: string[] | null;
}

/** At most `limit` entries behind a place, with their places. */
export async function moderationEntries(
  db: Queryable,
  filter: ModerationFilter,
  { way, from_place, limit }: { way: Way; from_place: number | null; limit: number },
): Promise<{ place: number; entry: ModerationLogEntry }[]> {
  const p = new Parameters();
  const conditions = [`l.account_id = ${p.add(filter.account_id)}`, 'l.is_listed'];
  const only = (value: unknown, condition: (parameter: string) => string) => {
    if (value !== null) conditions.push(condition(p.add(value)));
  };
  only(filter.platforms, (value) => `l.platform = any(${value}::text[])`);
  only(filter.actions, (value) => `l.action = any(${value}::text[])`);
  const names = (member: string) => (value: string) =>
    `(l.content ->> '${member}' = ${value} or exists (
       select from moderation_log t where t.twin_of = l.id and t.content ->> '${member}' = ${value}))`;
  only(filter.target_user_id, names('target_user_id'));
  only(filter.moderator_id, names('moderator_id'));
  only(filter.from, (value) => `l.created_at >= ${value}::timestamptz`);
  only(filter.to, (value) => `l.created_at < ${value}::timestamptz`);
  only(from_place, (value) => `l.place ${way === 'older' ? '<' : '>'} ${value}::bigint`);
  const rows = await db.query<EntryRow & Record<string, unknown>>(
    `select l.place, l.id, l.account_id, l.platform, l.action, l.created_at, l.content,
       (select array_agg(t.content::text order by t.place) from moderation_log t where t.twin_of = l.id) as repeated
     from moderation_log l where ${conditions.join(' and ')}
     order by l.place ${way === 'older' ? 'desc' : 'asc'} limit ${p.add(limit)}`,
    p.values,
  );
  return rows.map((row) => ({ place: row.place, entry: entryOf(row) }));
}

type Content = Omit<ModerationLogEntry, 'id' | 'account_id' | 'platform' | 'created_at'>;

const NOTHING: Omit<Content, 'action'> = {
  ...{ target_user_id: null, target_username: null, moderator_id: null, moderator_name: null },
  ...{ platform_message_id: null, message: null, reason: null, duration_secs: null, ends_at: null },
  source_channel_id: null,
};

/** The act, with what the records that repeat it add; an erased one has no content. */
function entryOf({ id, account_id, platform, action, created_at, content, repeated }: EntryRow): ModerationLogEntry {
  const shown: Content & Record<string, unknown> = { action, ...NOTHING, ...(JSON.parse(content) as Partial<Content>) };
  for (const text of repeated ?? [])
    for (const [name, value] of Object.entries(JSON.parse(text) as Content)) shown[name] ??= value;
  const { target_user_id, target_username, moderator_id, moderator_name, platform_message_id } = shown;
  const { message, reason, duration_secs, ends_at, source_channel_id } = shown;
  const act = { action, target_user_id, target_username, moderator_id, moderator_name, platform_message_id, message };
  return { id, account_id, platform, ...act, reason, duration_secs, ends_at, source_channel_id, created_at };
}
