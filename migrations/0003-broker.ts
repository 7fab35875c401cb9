import type { Migration } from './index';

/**
 * The embedded broker: topics with partitions, a log of records each, and the leases by which the consumers of a group
 * share partitions.
 *
 * `broker_partitions` holds each partition's next offset. A publish locks the rows of its partitions first, in
 * partition order, and keeps them until its commit: so offsets are dense, their order is commit order, and a reader
 * that has seen offset n has seen all below it. Records lie in one table per topic, so that a topic is read in the
 * order of its own pages and trimmed without touching the others.
 */
export const broker: Migration = {
  name: '0003-broker',
  async up(knex) {
    await knex.raw(TABLES);
    await knex.raw(ENSURE_TOPIC);
    await knex.raw(PUBLISH);
    await knex.raw(FETCH);
    await knex.raw(BALANCE);
  },
};

const TABLES = `
  create table broker_topics (
    topic_id   int generated always as identity primary key,
    topic      text not null unique,
    partitions int not null check (partitions > 0)
  );
  -- Updated by every publish: room in the page keeps these updates off the index.
  create table broker_partitions (
    topic_id    int not null references broker_topics,
    partition   int not null,
    earliest    bigint not null default 0,
    next_offset bigint not null default 0,
    primary key (topic_id, partition)
  ) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
  create table broker_records (
    topic_id    int not null,
    partition   int not null,
    "offset"    bigint not null,
    appended_at timestamptz not null,
    key         text not null,
    headers     text,
    value       bytea not null,
    primary key (topic_id, partition, "offset")
  ) partition by list (topic_id);
  -- session_lock: an advisory lock that the member's process holds on a connection of its own, and loses when it dies.
  create table broker_members (
    topic_id     int not null references broker_topics,
    group_name   text not null,
    member       uuid not null,
    session_lock bigint not null,
    renewed_at   timestamptz not null,
    primary key (topic_id, group_name, member)
  );
  create table broker_leases (
    topic_id   int not null references broker_topics,
    group_name text not null,
    partition  int not null,
    member     uuid not null,
    primary key (topic_id, group_name, partition)
  );
`;

const ENSURE_TOPIC = `
  create function broker_ensure_topic(p_topic text, p_partitions int) returns void
  language plpgsql volatile as $$
  declare
    v_id int;
  begin
    if exists (select from broker_topics t where t.topic = p_topic) then return; end if;
    -- Many processes may start at once; the second one finds the topic made.
    perform pg_advisory_xact_lock(7070003);
    insert into broker_topics (topic, partitions) values (p_topic, p_partitions)
      on conflict (topic) do nothing returning topic_id into v_id;
    if v_id is null then return; end if;
    insert into broker_partitions (topic_id, partition) select v_id, p from generate_series(0, p_partitions - 1) p;
    execute format('create table broker_records_%s partition of broker_records for values in (%s)', v_id, v_id);
  end $$;
`;

// p_data holds, record after record, key, headers and value; p_start (1-based) and the three lengths say where. p_rank
// is the record's number within its partition in this call. Plans must be right for an empty table and for a hundred
// million rows: index probes only.
const PUBLISH = `
  create function broker_publish(
    p_topic_id int, p_data bytea,
    p_partition int[], p_rank int[], p_start int[], p_key int[], p_headers int[], p_value int[],
    p_partitions int[], p_counts int[]
  ) returns void
  language plpgsql volatile
  set enable_seqscan = off
  set jit = off
  as $$
  declare
    v_now timestamptz;
  begin
    perform from broker_partitions b
      where b.topic_id = p_topic_id and b.partition = any (p_partitions) order by b.partition for update;
    v_now := clock_timestamp();
    with moved as (
      update broker_partitions b set next_offset = b.next_offset + c.size
      from unnest(p_partitions, p_counts) c (partition, size)
      where b.topic_id = p_topic_id and b.partition = c.partition
      returning b.partition, b.next_offset - c.size as first_offset
    )
    insert into broker_records (topic_id, partition, "offset", appended_at, key, headers, value)
    select p_topic_id, r.partition, m.first_offset + r.rank, v_now,
      convert_from(substring(p_data from r.start for r.key), 'UTF8'),
      case when r.headers > 0 then convert_from(substring(p_data from r.start + r.key for r.headers), 'UTF8') end,
      substring(p_data from r.start + r.key + r.headers for r.value)
    from unnest(p_partition, p_rank, p_start, p_key, p_headers, p_value) r (partition, rank, start, key, headers, value)
    join moved m on m.partition = r.partition;
  end $$;
`;

// One row per partition asked for; "packed" is null when there is nothing to read, else the records one after the
// other: offset int8, appended_at int8 (microseconds since 2000), lengths of key, headers and value int4 each, then
// these three. The driver decodes one value of a megabyte far faster than ten thousand small ones, and base64 twice as
// fast as its own hex. Records and bytes are shared between the partitions that have any.
const FETCH = `
  create function broker_fetch(
    p_topic_id int, p_partition int[], p_from bigint[], p_to bigint[], p_max_records int, p_max_bytes int
  ) returns table (partition int, earliest bigint, next_offset bigint, packed text)
  language plpgsql stable
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
  as $$
  #variable_conflict use_column
  begin
    return query
    with wanted as (
      select b.partition, b.earliest, b.next_offset, w.from_offset, least(w.to_offset, b.next_offset) as to_offset,
        greatest(1, count(*) filter (where w.from_offset < least(w.to_offset, b.next_offset)) over ()) as busy
      from unnest(p_partition, p_from, p_to) w (partition, from_offset, to_offset)
      join broker_partitions b on b.topic_id = p_topic_id and b.partition = w.partition
    )
    select w.partition, w.earliest, w.next_offset, found.packed
    from wanted w
    left join lateral (
      select encode(string_agg(
          int8send(r."offset") || timestamptz_send(r.appended_at) || int4send(octet_length(r.key))
            || int4send(coalesce(octet_length(r.headers), 0)) || int4send(octet_length(r.value))
            || textsend(r.key || coalesce(r.headers, '')) || r.value, ''::bytea order by r."offset"), 'base64') as packed
      from (
        select s.*, sum(octet_length(s.value)) over (order by s."offset" rows unbounded preceding) - octet_length(s.value) as bytes_before
        from (
          select l.* from broker_records l
          where l.topic_id = p_topic_id and l.partition = w.partition and l."offset" >= w.from_offset and l."offset" < w.to_offset
          order by l."offset" limit greatest(1, p_max_records / w.busy)
        ) s
      ) r
      where r.bytes_before < p_max_bytes / w.busy
    ) found on w.from_offset >= w.earliest and w.from_offset < w.to_offset
    order by w.partition;
  end $$;
`;

// Heartbeat, burial of dead members, give-back and take-over in one call; calls of one group come one after the other.
// Live members in the order of their ids share the partitions in turn. A partition that is wanted by another stays
// leased until its holder gives it back.
const BALANCE = `
  create function broker_balance(
    p_topic_id int, p_group text, p_member uuid, p_session_lock bigint, p_release int[], p_patience interval
  ) returns table (partition int, wanted boolean, joined boolean)
  language plpgsql volatile as $$
  #variable_conflict use_column
  declare
    v_now timestamptz;
    v_members uuid[];
    v_joined boolean;
  begin
    perform pg_advisory_xact_lock(7070004, hashtext(p_topic_id || ':' || p_group));
    v_now := clock_timestamp();
    insert into broker_members as m (topic_id, group_name, member, session_lock, renewed_at)
      values (p_topic_id, p_group, p_member, p_session_lock, v_now)
      on conflict (topic_id, group_name, member) do update set renewed_at = excluded.renewed_at, session_lock = excluded.session_lock
      returning m.xmax = 0 into v_joined;
    delete from broker_members m
      where m.topic_id = p_topic_id and m.group_name = p_group and m.member <> p_member
        and (m.renewed_at < v_now - p_patience or pg_try_advisory_xact_lock(m.session_lock));
    delete from broker_leases l
      where l.topic_id = p_topic_id and l.group_name = p_group
        and ((l.member = p_member and l.partition = any (p_release))
          or not exists (select from broker_members m where m.topic_id = p_topic_id and m.group_name = p_group and m.member = l.member));
    select array_agg(m.member order by m.member) into v_members
      from broker_members m where m.topic_id = p_topic_id and m.group_name = p_group;
    insert into broker_leases (topic_id, group_name, partition, member)
      select p_topic_id, p_group, b.partition, p_member from broker_partitions b
      where b.topic_id = p_topic_id and v_members[1 + b.partition % cardinality(v_members)] = p_member
      on conflict do nothing;
    return query
      select l.partition, v_members[1 + l.partition % cardinality(v_members)] = p_member, v_joined from broker_leases l
      where l.topic_id = p_topic_id and l.group_name = p_group and l.member = p_member
      union all
      select null::int, true, v_joined
      order by 1;
  end $$;

  create function broker_leave(p_topic_id int, p_group text, p_member uuid) returns void
  language plpgsql volatile as $$
  begin
    perform pg_advisory_xact_lock(7070004, hashtext(p_topic_id || ':' || p_group));
    delete from broker_leases l where l.topic_id = p_topic_id and l.group_name = p_group and l.member = p_member;
    delete from broker_members m where m.topic_id = p_topic_id and m.group_name = p_group and m.member = p_member;
  end $$;
`;
