-- version 1
-- Stores the one event of an append that came alone, as append_domain_events does for many: 0 stored, 1 refused by the
-- revision, 2 stored before, 3 the id of an event that belongs to another append. -2 expects any revision, -1 none.
-- A commit holds the position order from its append on, and each statement looks anew, so what was found under the
-- lock stays true. Only index probes are left to choose from, for an empty table as for a large one.
create or replace function append_domain_event(
  p_stream text, p_expected bigint, p_id uuid, p_type text, p_data json, p_metadata json,
  out status int, out revision bigint, out at_position bigint
)
language plpgsql volatile
set enable_seqscan = off
as $append$
#variable_conflict use_column
declare
  v_stream text;
  v_head bigint;
begin
  perform pg_advisory_xact_lock(7070002);
  select coalesce((select e.revision from domain_events e where e.stream = p_stream order by e.revision desc limit 1), -1)
    into v_head;
  insert into domain_events (position, stream, revision, id, type, data, metadata, recorded_at)
    select coalesce((select max(e.position) from domain_events e), 0) + 1, p_stream, v_head + 1, p_id, p_type, p_data,
           p_metadata, clock_timestamp()
    where p_expected in (-2, v_head) and not exists (select from domain_events e where e.id = p_id)
    returning 0, domain_events.revision, position into status, revision, at_position;
  if found then return; end if;
  select e.stream, e.revision, e.position from domain_events e where e.id = p_id into v_stream, revision, at_position;
  if v_stream = p_stream then
    status := 2;
  else
    status := case when v_stream is null then 1 else 3 end;
    revision := v_head;
    at_position := null;
  end if;
end
$append$;
