-- version 1
-- Stores appends in the order of positions and answers for each of their writes: 0 stored, 1 refused by a revision,
-- 2 stored before, 3 an event id that belongs to another append. A wave holds no stream twice; lists of text are
-- joined by line ends. Each plan must be right for an empty table and for a hundred million rows: only index probes
-- are left to choose from. 7070002 is the lock of the position order.
create or replace function append_domain_events(
  p_metadata text, p_wave_writes int[], p_wave_events int[],
  p_write_append int[], p_write_stream text, p_write_expected bigint[], p_write_size int[], p_write_last_id text,
  p_event_write int[], p_event_index int[], p_event_id text, p_event_type text, p_event_data text
) returns table (write_no int, status int, revision bigint, at_position bigint)
language plpgsql volatile
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $append$
#variable_conflict use_column
declare
  v_metadata text[] := string_to_array(p_metadata, E'\n');
  v_stream text[] := string_to_array(p_write_stream, E'\n');
  v_last_id uuid[] := string_to_array(p_write_last_id, E'\n')::uuid[];
  v_id uuid[] := string_to_array(p_event_id, E'\n')::uuid[];
  v_type text[] := string_to_array(p_event_type, E'\n');
  v_data text[] := string_to_array(p_event_data, E'\n');
  v_now timestamptz;
  w0 int := 0;
  e0 int := 0;
  w1 int;
  e1 int;
begin
  perform pg_advisory_xact_lock(7070002);
  v_now := clock_timestamp();
  for wave in 1 .. cardinality(p_wave_writes) loop
    w1 := p_wave_writes[wave];
    e1 := p_wave_events[wave];
    return query
      with found as (
        select w0 + u.n::int as write_no, u.append_no, u.size, u.expected, coalesce(h.revision, -1) as head,
               d.position as first_position, d.revision as first_revision, coalesce(d.stream = u.stream, false) as again
        from unnest(p_write_append[w0 + 1 : w1], v_stream[w0 + 1 : w1], p_write_expected[w0 + 1 : w1],
                    p_write_size[w0 + 1 : w1], v_last_id[w0 + 1 : w1])
             with ordinality as u (append_no, stream, expected, size, last_id, n)
        left join lateral (
          select e.revision from domain_events e where e.stream = u.stream order by e.revision desc limit 1
        ) h on true
        left join lateral (
          select e.position, e.revision, e.stream from domain_events e where e.id = u.last_id limit 1
        ) d on true
      ), judged as (
        select f.*, case when count(f.first_position) over a > 0
                         then case when bool_and(f.again) over a then 2 else 3 end
                         when bool_or(f.expected <> -2 and f.expected <> f.head) over a then 1
                         else 0 end as status
        from found f
        window a as (partition by f.append_no)
      ), placed as materialized (
        select j.*, (select coalesce(max(e.position), 0) from domain_events e)
                    + sum(case when j.status = 0 then j.size else 0 end) over (order by j.write_no) as last_position
        from judged j
      ), stored as (
        insert into domain_events (position, stream, revision, id, type, data, metadata, recorded_at)
        select p.last_position - p.size + u.index, v_stream[p.write_no], p.head + u.index, u.id, u.type, u.data::json,
               v_metadata[p.append_no]::json, v_now
        from unnest(p_event_write[e0 + 1 : e1], p_event_index[e0 + 1 : e1], v_id[e0 + 1 : e1], v_type[e0 + 1 : e1],
                    v_data[e0 + 1 : e1])
             as u (write_no, index, id, type, data)
        join placed p on p.write_no = u.write_no and p.status = 0
      )
      select p.write_no, p.status,
             case p.status when 0 then p.head + p.size when 2 then p.first_revision else p.head end,
             case p.status when 0 then p.last_position::bigint when 2 then p.first_position end
      from placed p;
    w0 := w1;
    e0 := e1;
  end loop;
end
$append$;
