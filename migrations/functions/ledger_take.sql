-- version 4
-- Takes records into a projection's ledger (projections/runtime/ledger/ledger.ts). Answers for those that are known (`own`: by
-- this very record) and for those whom another worker was faster than.
-- A quarter begins with an empty partition: a plan that was made then and reads it whole would be kept while it grows.
-- So each record is looked for by the partitions' keys, whatever they hold (`offset 0` keeps the two sides of the join
-- as they are written). Partitions of quarters that have not begun are left out. Lists of ids are compared by `in`, which
-- hashes them however few the planner takes them for.
-- Mostly no other worker is at the same ids: they are written without the look of `on conflict`. Where that failed
-- ledger_take_unsigned does it, which looks; what was answered before the failure is answered twice, and means the
-- same.
create or replace function ledger_take(
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
    ),
    taken as (
      insert into ledger (projection, topic, account_id, external_id, record_id)
      select p_projection, p_topic, a.account_id, a.external_id, a.id from asked a
      where a.external_id is not null and a.id not in (select k.id from known k)
    )
    select k.id, k.own from known k;
  exception when unique_violation then
    return query
    select asked.id, asked.own
    from ledger_take_unsigned(p_projection, p_topic, p_accounts, p_external_ids, p_ids, '{}', '{}') asked;
  end;
end $$;
