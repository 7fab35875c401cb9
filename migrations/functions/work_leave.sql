-- version 2
create or replace function work_leave(p_member uuid) returns void
language plpgsql volatile as $$
begin
  -- Excludes work_balance of the previous release, which locks by 7070013 alone.
  perform pg_advisory_xact_lock_shared(7070013);
  perform work_bury(array[p_member]);
end $$;
