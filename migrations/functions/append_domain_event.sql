-- version 2
-- Stores the one event of an append that came alone, as append_domain_events does for many: 0 stored, 1 refused by the
-- revision, 2 stored before, 3 the id of an event that belongs to another append. -2 expects any revision, -1 none.
-- A commit holds the position order from its append on, and each statement looks anew, so what was found under the
-- lock stays true. Only index probes are left to choose from, for an empty table as for a large one. The lock is taken
-- by an expression, and what is found is asked for at once: each statement of a function costs its own beginning and
-- end.
create or replace function append_domain_event(
  p_stream text, p_expected bigint, p_id uuid, p_type text, p_data json, p_metadata json,
  out status int, out revision bigint, out at_position bigint
)
language plpgsql volatile
set enable_seqscan = off
as $append$
#variable_conflict use_column
declare
  v_locked constant boolean := pg_advisory_xact_lock(7070002) is not null;
  v_head bigint;
  v_last bigint;
  v_stream text;
begin
  select (select e.revision from domain_events e where e.stream = p_stream order by e.revision desc limit 1),
         (select e.position from domain_events e order by e.position desc limit 1),
         (select e.stream from domain_events e where e.id = p_id)
    into v_head, v_last, v_stream;
  v_head := coalesce(v_head, -1);
  if v_stream is null and p_expected in (-2, v_head) then
    status := 0;
    revision := v_head + 1;
    at_position := coalesce(v_last, 0) + 1;
    insert into domain_events (position, stream, revision, id, type, data, metadata, recorded_at)
      values (at_position, p_stream, revision, p_id, p_type, p_data, p_metadata, clock_timestamp());
  elsif v_stream = p_stream then
    status := 2;
    select e.revision, e.position from domain_events e where e.id = p_id into revision, at_position;
  else
    status := case when v_stream is null then 1 else 3 end;
    revision := v_head;
  end if;
end
$append$;
