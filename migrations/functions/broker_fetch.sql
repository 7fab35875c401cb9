-- version 2
-- What builds call that do not know broker_read: the same with its bytes in base64.
create or replace function broker_fetch(
  p_topic_id int, p_partition int[], p_from bigint[], p_to bigint[], p_max_records int, p_max_bytes int
) returns table (partition int, earliest bigint, next_offset bigint, packed text)
language plpgsql stable as $$
begin
  return query
  select r.partition, r.earliest, r.next_offset, encode(r.packed, 'base64')
  from broker_read(p_topic_id, p_partition, p_from, p_to, p_max_records, p_max_bytes) r;
end $$;
