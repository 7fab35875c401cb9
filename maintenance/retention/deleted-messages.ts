/**
 * Statement that deletes chat messages of account $1 and subtracts them from the counts of their days. `old` selects
 * the messages by `account_id`, `platform` and `place`. Returns one row with their `count`.
 */
export const deletingMessages = (old: string): string => `
  with old as (${old}), gone as (
    delete from platform_chat_messages m using old
    where m.account_id = old.account_id and m.platform = old.platform and m.place = old.place
    returning m.platform, m.created_at
  ), counted as (
    insert into chat_message_counts as c (account_id, platform, day, count)
      select $1::uuid, platform, (created_at at time zone 'UTC')::date, -count(*) from gone
      group by 1, 2, 3 order by 1, 2, 3
    on conflict (account_id, platform, day) do update set count = c.count + excluded.count
  )
  select count(*)::int as count from gone`;
