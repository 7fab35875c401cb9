-- version 2
-- Gives holds of one kind back, to the member that wants them where there is one, and takes free names. Marks holds as
-- wanted only where nothing of the kind has changed after at, since the choice was made by that state. Returns the
-- names that were taken.
create or replace function work_change(
  p_me uuid, p_kind text, give text[], take text[], want text[], at bigint
) returns table (name text)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_current boolean;
begin
  perform pg_advisory_xact_lock_shared(7070013);
  perform pg_advisory_xact_lock(7070014, hashtext(p_kind));
  if not exists (select from work_members m where m.member = p_me) then return; end if;
  v_current := not exists (select from work_holds h where h.kind = p_kind and h.change > at)
    and not exists (select from work_freed f where f.kind = p_kind and f.change > at);
  update work_holds h set member = h.wanted_by, wanted_by = null, change = nextval('work_changes')
    where h.name = any (give) and h.member = p_me
      and exists (select from work_members m where m.member = h.wanted_by);
  with freed as (
    delete from work_holds h where h.name = any (give) and h.member = p_me returning h.name
  )
  insert into work_freed (kind, name) select p_kind, f.name from freed f;
  delete from work_freed f where f.kind = p_kind and f.freed_at < clock_timestamp() - interval '2 minutes';
  if v_current then
    update work_holds h set wanted_by = p_me, change = nextval('work_changes')
      where h.name = any (want) and h.member <> p_me
        -- The previous release removes the row of a dead member alone.
        and not exists (select from work_members m where m.member = h.wanted_by);
  end if;
  return query
    insert into work_holds as h (name, member)
    select t.name, p_me from unnest(take) as t (name) order by t.name
    on conflict (name) do update
      set member = excluded.member, wanted_by = null, change = nextval('work_changes')
      where not exists (select from work_members m where m.member = h.member)
    returning h.name;
end $$;
