-- version 1
create or replace function work_leave(p_member uuid) returns void
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(7070013);
  delete from work_holds h where h.member = p_member;
  delete from work_members m where m.member = p_member;
end $$;
