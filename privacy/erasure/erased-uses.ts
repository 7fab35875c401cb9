import { NOBODY } from '../../domain/chat/chat-history';
import type { Queryable } from '../../engines/postgres/port';
import { isFromSharedRoom, minuteOf } from '../../maintenance/retention/deleted-messages';

const KEY = 'account_id, platform, since, live_chat_id, person_key';
/** The session of `m` at `time` is finished: its figures keep what a live one loses. */
const inFinished = (time: string): string => `exists (
  select from stream_sessions s where s.account_id = m.account_id and not s.is_live
    and ${time} >= s.started_at and ${time} < s.ended_at)`;
const ADD = `on conflict (${KEY}) do update set emotes = k.emotes || excluded.emotes`;

const USES_OF_MESSAGES = `
  insert into erased_uses as k (${KEY}, emotes)
  select ${KEY}, jsonb_agg(part) from (
    select m.account_id, m.platform, ${minuteOf('m')} as since, coalesce(m.live_chat_id, '') as live_chat_id,
      coalesce(m.person_key, '${NOBODY}') as person_key,
      jsonb_build_object('type', p ->> 'type', 'id', p ->> 'id', 'provider', coalesce(p ->> 'provider', m.platform),
        'text', p ->> 'text', 'url', p ->> 'url') as part
    from platform_chat_messages m cross join json_array_elements(m.content -> 'parts') p
    where m.id = any($1::uuid[]) and p ->> 'type' in ('emote', 'gif') and not ${isFromSharedRoom('m')}
      and ${inFinished('m.created_at')}) used
  group by ${KEY} order by ${KEY} ${ADD}`;
const USES_OF_PERSONS = `
  insert into erased_uses as k (${KEY}, emotes)
  select ${KEY}, emotes from chat_minute_counts m
  where person_key = any($1::uuid[]) and emotes is not null and ${inFinished('since')} order by ${KEY} ${ADD}`;
const SHARED = `
  insert into erased_shared_messages (id, account_id)
  select id, account_id from platform_chat_messages m where id = any($1::uuid[]) and ${isFromSharedRoom('m')}
  on conflict do nothing`;

/** Keeps what messages count for, before an erasure deletes or empties them. */
export async function keepUsesOfMessages(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query(SHARED, [ids], 'erased-shared-messages');
  await tx.query(USES_OF_MESSAGES, [ids], 'erased-uses');
}

/** Keeps the uses in persons' counts of minutes, before an erasure empties them. */
export async function keepUsesOfPersons(tx: Queryable, person_keys: readonly string[]): Promise<void> {
  await tx.query(USES_OF_PERSONS, [person_keys], 'erased-uses-of-persons');
}
