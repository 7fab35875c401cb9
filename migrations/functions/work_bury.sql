-- version 1
-- Frees the holds of members and removes their rows. 7070014 with the kind is the lock of the holds of one kind.
create or replace function work_bury(p_members uuid[]) returns void
language plpgsql volatile as $$
declare
  v_kind text;
begin
  for v_kind in
    select unnest(m.kinds) from work_members m where m.member = any (p_members)
    union select h.kind from work_holds h where h.member = any (p_members) or h.wanted_by = any (p_members)
    order by 1
  loop
    perform pg_advisory_xact_lock(7070014, hashtext(v_kind));
    with freed as (
      delete from work_holds h where h.kind = v_kind and h.member = any (p_members) returning h.name
    )
    insert into work_freed (kind, name) select v_kind, f.name from freed f;
    update work_holds h set wanted_by = null, change = nextval('work_changes')
      where h.kind = v_kind and h.wanted_by = any (p_members);
  end loop;
  delete from work_members m where m.member = any (p_members);
end $$;
