import type { Migration } from './index';

/**
 * Publishing returns the offsets of the records, so that the writing process need not read them back. The old function
 * stays for nodes of the previous release, whose prepared calls must not get another result type.
 */
export const brokerAppend: Migration = {
  name: '0016-broker-append',
  async up(knex) {
    await knex.raw(`
      -- See 0003 for the arguments. One row per partition touched; microseconds since 1970 is the records' appended_at.
      create function broker_append(
        p_topic_id int, p_data bytea,
        p_partition int[], p_rank int[], p_start int[], p_key int[], p_headers int[], p_value int[],
        p_partitions int[], p_counts int[]
      ) returns table (partition int, first_offset bigint, appended_micros bigint)
      language plpgsql volatile
      set enable_seqscan = off
      set jit = off
      as $$
      #variable_conflict use_column
      declare
        v_now timestamptz;
      begin
        perform from broker_partitions b
          where b.topic_id = p_topic_id and b.partition = any (p_partitions) order by b.partition for update;
        v_now := clock_timestamp();
        return query
        with moved as (
          update broker_partitions b set next_offset = b.next_offset + c.size
          from unnest(p_partitions, p_counts) c (partition, size)
          where b.topic_id = p_topic_id and b.partition = c.partition
          returning b.partition, b.next_offset - c.size as first_offset
        ), written as (
          insert into broker_records (topic_id, partition, "offset", appended_at, key, headers, value)
          select p_topic_id, r.partition, m.first_offset + r.rank, v_now,
            convert_from(substring(p_data from r.start for r.key), 'UTF8'),
            case when r.headers > 0 then convert_from(substring(p_data from r.start + r.key for r.headers), 'UTF8') end,
            substring(p_data from r.start + r.key + r.headers for r.value)
          from unnest(p_partition, p_rank, p_start, p_key, p_headers, p_value) r (partition, rank, start, key, headers, value)
          join moved m on m.partition = r.partition
        )
        select m.partition, m.first_offset, (extract(epoch from v_now) * 1000000)::bigint from moved m;
      end $$;

      create or replace function broker_publish(
        p_topic_id int, p_data bytea,
        p_partition int[], p_rank int[], p_start int[], p_key int[], p_headers int[], p_value int[],
        p_partitions int[], p_counts int[]
      ) returns void
      language sql volatile
      as 'select from broker_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)';
    `);
  },
};
