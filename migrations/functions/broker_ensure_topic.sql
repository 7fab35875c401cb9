-- version 1
-- Makes a topic with its partitions where it is not there; 7070003 is the lock of making topics.
create or replace function broker_ensure_topic(p_topic text, p_partitions int) returns void
language plpgsql volatile as $$
declare
  v_id int;
begin
  if exists (select from broker_topics t where t.topic = p_topic) then return; end if;
  -- Many processes may start at once; the second one finds the topic made.
  perform pg_advisory_xact_lock(7070003);
  insert into broker_topics (topic, partitions) values (p_topic, p_partitions)
    on conflict (topic) do nothing returning topic_id into v_id;
  if v_id is null then return; end if;
  insert into broker_partitions (topic_id, partition) select v_id, p from generate_series(0, p_partitions - 1) p;
  execute format('create table broker_records_%s partition of broker_records for values in (%s)', v_id, v_id);
end $$;
