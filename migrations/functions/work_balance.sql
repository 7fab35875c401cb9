-- version 1
-- Heartbeat, burial of dead members, give-back and take-over in one call, one process after the other. The names that
-- are offered are counted off over the members that offer them; what another should have stays held until its holder
-- gives it back.
create or replace function work_balance(
  p_member uuid, p_session_lock bigint, p_names text[], p_release text[], p_patience interval
) returns table (name text, wanted boolean, joined boolean)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_joined boolean;
begin
  perform pg_advisory_xact_lock(7070013);
  v_now := clock_timestamp();
  v_joined := not exists (select from work_members m where m.member = p_member and m.names = p_names);
  insert into work_members as m (member, session_lock, names, renewed_at)
    values (p_member, p_session_lock, p_names, v_now)
    on conflict (member) do update
      set session_lock = excluded.session_lock, names = excluded.names, renewed_at = excluded.renewed_at;
  delete from work_members m
    where m.member <> p_member
      and (m.renewed_at < v_now - p_patience or pg_try_advisory_xact_lock(m.session_lock));
  delete from work_holds h
    where (h.member = p_member and (h.name = any (p_release) or h.name <> all (p_names)))
      or not exists (select from work_members m where m.member = h.member);
  return query
    with offered as (
      select n.name, array_agg(m.member order by m.member) as members
      from work_members m cross join lateral unnest(m.names) as n (name) group by n.name
    ), counted as (
      select o.name, o.members[1 + (row_number() over (order by o.name) - 1) % cardinality(o.members)] as wanted_by
      from offered o
    ), taken as (
      insert into work_holds (name, member)
      select c.name, p_member from counted c where c.wanted_by = p_member
      on conflict do nothing
      returning name
    )
    select t.name, true, v_joined from taken t
    union all
    select h.name, c.wanted_by = p_member, v_joined
    from work_holds h join counted c on c.name = h.name where h.member = p_member
    union all
    select null::text, true, v_joined;
end $$;
