-- version 1
-- A member's leases are free at once.
create or replace function broker_leave(p_topic_id int, p_group text, p_member uuid) returns void
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(7070004, hashtext(p_topic_id || ':' || p_group));
  delete from broker_leases l where l.topic_id = p_topic_id and l.group_name = p_group and l.member = p_member;
  delete from broker_members m where m.topic_id = p_topic_id and m.group_name = p_group and m.member = p_member;
end $$;
