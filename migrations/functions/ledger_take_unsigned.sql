-- version 2
-- As ledger_take, for records that are also known by their bytes, or by an id that is looked for and never written.
create or replace function ledger_take_unsigned(
  p_projection text, p_topic text, p_accounts text[], p_external_ids text[], p_ids text[],
  p_former_ids text[], p_bodies text[]
) returns table (id uuid, own boolean)
language plpgsql volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
  return query
  with asked as materialized (
    select unnest(p_accounts)::uuid as account_id, unnest(p_external_ids) as external_id, unnest(p_ids)::uuid as id,
      unnest(p_former_ids) as former_id, unnest(p_bodies) as body
  ),
  known as materialized (
    select a.id, found.record_id = a.id as own from asked a cross join lateral (
      select l.record_id from ledger l
      where l.account_id = a.account_id and l.external_id = a.external_id
        and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
      offset 0) found
    union all
    select a.id, found.record_id = a.id as own from asked a cross join lateral (
      select l.record_id from ledger l
      where l.account_id = a.account_id and l.external_id = a.former_id
        and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
      offset 0) found
    union all
    select a.id, found.record_id = a.id from asked a cross join lateral (
      select b.record_id from ledger_bodies b
      where b.account_id = a.account_id and b.body = a.body and b.projection = p_projection
      offset 0) found
  ),
  claimed as (
    -- One order for all workers, so that two never wait for each other in a circle.
    insert into ledger_bodies (projection, account_id, body, record_id)
    select p_projection, a.account_id, a.body, a.id from asked a
    where a.body is not null and a.id not in (select k.id from known k)
    order by a.account_id, a.body
    on conflict do nothing returning record_id
  ),
  taken as (
    insert into ledger (projection, topic, account_id, external_id, record_id)
    select p_projection, p_topic, a.account_id, a.external_id, a.id from asked a
    where a.external_id is not null and a.id not in (select k.id from known k)
      and (a.body is null or a.id in (select c.record_id from claimed c))
    on conflict do nothing returning record_id
  )
  select k.id, bool_and(k.own) from known k group by k.id
  union all
  select a.id, false from asked a
  where a.id not in (select k.id from known k)
    and (a.external_id is not null and a.id not in (select t.record_id from taken t)
      or a.body is not null and a.id not in (select c.record_id from claimed c));
end $$;
