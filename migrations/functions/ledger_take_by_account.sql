-- version 1
-- As ledger_take, for many records of few accounts: those of an account are looked for together, in the order of their
-- ids, so that each index is gone down once for its neighbours. `offset 0` keeps the two sides of that join as they are
-- written, and what is known is few and met by hash. Servers before 17 may look by the account alone and read all that
-- it has: there each record is looked for by itself.
create or replace function ledger_take_by_account(
  p_projection text, p_topic text, p_accounts text[], p_external_ids text[], p_ids text[]
) returns table (id uuid, own boolean)
language plpgsql volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_nestloop = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
  if current_setting('server_version_num')::int < 170000 then
    return query
    select asked.id, asked.own from ledger_take(p_projection, p_topic, p_accounts, p_external_ids, p_ids) asked;
    return;
  end if;
  begin
    return query
    with asked as materialized (
      select unnest(p_accounts)::uuid as account_id, unnest(p_external_ids) as external_id, unnest(p_ids)::uuid as id
    ),
    found as materialized (
      select wanted.account_id, before.external_id, before.record_id
      from (select a.account_id, array_agg(a.external_id) as ids from asked a group by a.account_id) wanted
        cross join lateral (
          select l.external_id, l.record_id from ledger l
          where l.account_id = wanted.account_id and l.external_id = any (wanted.ids)
            and l.projection = p_projection and l.topic = p_topic and l.taken_at < now() + interval '1 day'
          offset 0) before
    ),
    known as materialized (
      select a.id, f.record_id = a.id as own
      from found f join asked a on a.account_id = f.account_id and a.external_id = f.external_id
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
