-- version 1
-- Heartbeat, burial of dead members, give-back and take-over in one call; calls of one group come one after the
-- other. Live members in the order of their ids share the partitions in turn. A partition that is wanted by another
-- stays leased until its holder gives it back.
create or replace function broker_balance(
  p_topic_id int, p_group text, p_member uuid, p_session_lock bigint, p_release int[], p_patience interval
) returns table (partition int, wanted boolean, joined boolean)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_members uuid[];
  v_joined boolean;
begin
  perform pg_advisory_xact_lock(7070004, hashtext(p_topic_id || ':' || p_group));
  v_now := clock_timestamp();
  insert into broker_members as m (topic_id, group_name, member, session_lock, renewed_at)
    values (p_topic_id, p_group, p_member, p_session_lock, v_now)
    on conflict (topic_id, group_name, member)
      do update set renewed_at = excluded.renewed_at, session_lock = excluded.session_lock
    returning m.xmax = 0 into v_joined;
  delete from broker_members m
    where m.topic_id = p_topic_id and m.group_name = p_group and m.member <> p_member
      and (m.renewed_at < v_now - p_patience or pg_try_advisory_xact_lock(m.session_lock));
  delete from broker_leases l
    where l.topic_id = p_topic_id and l.group_name = p_group
      and ((l.member = p_member and l.partition = any (p_release))
        or not exists (
          select from broker_members m
          where m.topic_id = p_topic_id and m.group_name = p_group and m.member = l.member));
  select array_agg(m.member order by m.member) into v_members
    from broker_members m where m.topic_id = p_topic_id and m.group_name = p_group;
  insert into broker_leases (topic_id, group_name, partition, member)
    select p_topic_id, p_group, b.partition, p_member from broker_partitions b
    where b.topic_id = p_topic_id and v_members[1 + b.partition % cardinality(v_members)] = p_member
    on conflict do nothing;
  return query
    select l.partition, v_members[1 + l.partition % cardinality(v_members)] = p_member, v_joined from broker_leases l
    where l.topic_id = p_topic_id and l.group_name = p_group and l.member = p_member
    union all
    select null::int, true, v_joined
    order by 1;
end $$;
