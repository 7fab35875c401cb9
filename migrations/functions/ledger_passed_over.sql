-- version 2
-- The records whom the ledger does not name, for a rebuild, which takes none. The same plans as ledger_take.
create or replace function ledger_passed_over(
  p_projection text, p_topic text, p_accounts text[], p_external_ids text[], p_ids text[]
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
    select unnest(p_accounts)::uuid as account_id, unnest(p_external_ids) as external_id, unnest(p_ids)::uuid as id
  ),
  known as materialized (
    select a.id, found.record_id = a.id as own from asked a cross join lateral (
      select l.record_id from ledger l
      where l.account_id = a.account_id and l.external_id = a.external_id
        and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
      offset 0) found
  )
  select a.id, false from asked a where a.id not in (select k.id from known k where k.own);
end $$;
