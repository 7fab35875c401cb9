import { NOBODY } from '../../domain/chat/chat-history';

/** SQL: true where the message of row `of` was said in another channel's room, also where it has been emptied since. */
export const isFromSharedRoom = (of: string): string => `(${of}.content ->> 'is_shared_chat' is not distinct from 'true'
  or (${of}.content is null and exists (select from erased_shared_messages x where x.id = ${of}.id)))`;
/** SQL: begin of the minute of row `of`, or of the broadcast that begins or ends in this minute before it. */
export const minuteOf = (of: string): string => `greatest(date_trunc('minute', ${of}.created_at), (
  select max(edge.at) from channel_status o cross join lateral (values (o.started_at), (o.ended_at)) edge (at)
  where o.account_id = ${of}.account_id and o.platform = ${of}.platform
    and edge.at between date_trunc('minute', ${of}.created_at) and ${of}.created_at))`;

const KEY = 'account_id, platform, since, live_chat_id, person_key';
/** Emotes and GIFs of the deleted messages of one minute and person. */
const EMOTES = `
  select ${KEY}, jsonb_agg(jsonb_build_object('type', type, 'id', emote_id, 'provider', provider, 'text', text,
    'url', url, 'count', count)) as emotes
  from (
    select ${KEY}, p ->> 'type' as type, p ->> 'id' as emote_id, coalesce(p ->> 'provider', platform) as provider,
      max(p ->> 'text') as text, max(p ->> 'url') as url, count(*) as count
    from minutes cross join json_array_elements(content -> 'parts') p
    where (has_emote or content::text like '%"gif"%') and p ->> 'type' in ('emote', 'gif')
    group by ${KEY}, 6, 7, 8
  ) used group by ${KEY}`;

/**
 * Statement that deletes chat messages, subtracts them from the counts of their days, and adds them to the counts of
 * minutes, which figures of streams read. `old` selects the messages by `account_id`, `platform` and `place`. Messages
 * of erased persons leave no emotes and no live chat, as in a rebuild. Returns one row with their `count`.
 */
export const deletingMessages = (old: string, { are_erased = false } = {}): string => `
  with old as (${old}), gone as (
    delete from platform_chat_messages m using old
    where m.account_id = old.account_id and m.platform = old.platform and m.place = old.place
    returning m.id, m.account_id, m.platform, m.created_at, m.live_chat_id, m.person_key, m.content, m.has_emote
  ), counted as (
    insert into chat_message_counts as c (account_id, platform, day, count)
      select account_id, platform, (created_at at time zone 'UTC')::date, -count(*) from gone
      group by 1, 2, 3 order by 1, 2, 3
    on conflict (account_id, platform, day) do update set count = c.count + excluded.count
  ), edges as materialized (
    select o.account_id, o.platform, edge.at
    from channel_status o cross join lateral (values (o.started_at), (o.ended_at)) edge (at)
    where o.account_id in (select account_id from gone)
      and edge.at between (select min(created_at) - interval '1 minute' from gone) and (select max(created_at) from gone)
  ), minutes as materialized (
    select g.account_id, g.platform, ${are_erased ? "''" : "coalesce(g.live_chat_id, '')"} as live_chat_id, g.content,
      g.has_emote,
      coalesce(g.person_key, '${NOBODY}') as person_key,
      greatest(date_trunc('minute', g.created_at), (select max(e.at) from edges e
        where e.account_id = g.account_id and e.platform = g.platform and e.at <= g.created_at)) as since
    from gone g where not ${isFromSharedRoom('g')}
  ), emotes as (${are_erased ? `select ${KEY}, null::jsonb as emotes from minutes where false` : EMOTES}
  ), kept as (
    insert into chat_minute_counts as k (${KEY}, count, emotes)
      select m.*, e.emotes from (select ${KEY}, count(*) from minutes group by ${KEY}) m
        left join emotes e using (${KEY})
      order by 1, 2, 3, 4, 5
    on conflict (${KEY}) do update set count = k.count + excluded.count,
      emotes = coalesce(k.emotes || excluded.emotes, k.emotes, excluded.emotes)
  )
  select count(*)::int as count from gone`;
