-- version 1
-- One row per partition asked for; "packed" is null when there is nothing to read, else the records one after the
-- other: offset int8, appended_at int8 (microseconds since 2000), lengths of key, headers and value int4 each, then
-- these three. The driver decodes one value of a megabyte far faster than ten thousand small ones. Records and bytes
-- are shared between the partitions that have any.
create or replace function broker_read(
  p_topic_id int, p_partition int[], p_from bigint[], p_to bigint[], p_max_records int, p_max_bytes int
) returns table (partition int, earliest bigint, next_offset bigint, packed bytea)
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
#variable_conflict use_column
begin
  return query
  with wanted as (
    select b.partition, b.earliest, b.next_offset, w.from_offset, least(w.to_offset, b.next_offset) as to_offset,
      greatest(1, count(*) filter (where w.from_offset < least(w.to_offset, b.next_offset)) over ()) as busy
    from unnest(p_partition, p_from, p_to) w (partition, from_offset, to_offset)
    join broker_partitions b on b.topic_id = p_topic_id and b.partition = w.partition
  )
  select w.partition, w.earliest, w.next_offset, found.packed
  from wanted w
  left join lateral (
    select string_agg(
        int8send(r."offset") || timestamptz_send(r.appended_at) || int4send(octet_length(r.key))
          || int4send(coalesce(octet_length(r.headers), 0)) || int4send(octet_length(r.value))
          || textsend(r.key || coalesce(r.headers, '')) || r.value, ''::bytea order by r."offset") as packed
    from (
      select s.*, sum(octet_length(s.value)) over (order by s."offset" rows unbounded preceding)
          - octet_length(s.value) as bytes_before
      from (
        select l.* from broker_records l
        where l.topic_id = p_topic_id and l.partition = w.partition
            and l."offset" >= w.from_offset and l."offset" < w.to_offset
        order by l."offset" limit greatest(1, p_max_records / w.busy)
      ) s
    ) r
    where r.bytes_before < p_max_bytes / w.busy
  ) found on w.from_offset >= w.earliest and w.from_offset < w.to_offset
  order by w.partition;
end $$;
