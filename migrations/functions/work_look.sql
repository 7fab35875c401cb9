-- version 1
-- Heartbeat of a member and burial of members that are dead or silent for 10 s. Returns the living members and, for
-- each kind, the holds that changed after p_since, by [kind, name, member, wanted_by, change]; a hold that ended has no
-- member. p_names is for members of the previous release (`older`), which divide by the names that every row lists;
-- null leaves them.
create or replace function work_look(
  p_me uuid, p_lock bigint, p_kinds text[], p_since bigint[], p_names text[]
) returns jsonb
language plpgsql volatile as $$
declare
  v_now timestamptz;
  v_joined boolean;
  v_dead uuid[];
begin
  perform pg_advisory_xact_lock_shared(7070013);
  v_now := clock_timestamp();
  insert into work_members as m (member, session_lock, names, kinds, renewed_at)
    values (p_me, p_lock, coalesce(p_names, '{}'), p_kinds, v_now)
    on conflict (member) do update set
      session_lock = excluded.session_lock, names = coalesce(p_names, m.names), kinds = excluded.kinds,
      renewed_at = excluded.renewed_at
    returning xmax = 0 into v_joined;
  v_dead := array(
    select m.member from work_members m
    where m.member <> p_me
      and (m.renewed_at < v_now - interval '10 s' or pg_try_advisory_xact_lock(m.session_lock))
    for update skip locked);
  if cardinality(v_dead) > 0 then perform work_bury(v_dead); end if;
  return jsonb_build_object(
    'joined', v_joined,
    'older', exists (select from work_members m where m.kinds = '{}' and m.names <> '{}'),
    'members', (select jsonb_agg(jsonb_build_array(m.member, m.kinds)) from work_members m),
    'holds', (
      select coalesce(
        jsonb_agg(jsonb_build_array(c.kind, c.name, c.member, c.wanted_by, c.change) order by c.change), '[]')
      from unnest(p_kinds, p_since) as k (kind, since)
        cross join lateral (
          select h.kind, h.name, h.member, h.wanted_by, h.change from work_holds h
            where h.kind = k.kind and h.change > k.since
          union all
          select f.kind, f.name, null, null, f.change from work_freed f where f.kind = k.kind and f.change > k.since
        ) c));
end $$;
