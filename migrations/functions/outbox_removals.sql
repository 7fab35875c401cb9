-- version 1
-- Messages of a channel after `p_seq` that are younger than `p_window` and remove others: deletions of a chat, and
-- messages that were erased in their place. The plan is said here, see outbox_page.
create or replace function outbox_removals(p_channel text, p_seq bigint, p_window interval)
returns table (seq bigint, event_type text, data text)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $body$
#variable_conflict use_column
begin
  return query
  select o.seq, o.event_type, o.data from outbox o
  where o.channel = p_channel and o.seq > p_seq and o.created_at > statement_timestamp() - p_window
    and (o.event_type in ('chat:delete', 'chat:clear_user')
      -- Behind `{"id":"` and a UUID.
      or substr(o.data, 45, 21) in (',"type":"chat:erased"', ',"payload":"[erased]"'))
  order by o.seq;
end
$body$;
