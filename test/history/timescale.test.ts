import type { Knex } from 'knex';
import { v7 as uuid } from 'uuid';
import { streamSamples as migration } from '../../migrations/0013-stream-samples';
import { streamSamples } from '../../projections/history/stream-samples';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { TOPICS } from '../../domain/common/records';
import { type TestDatabase, testDatabase } from '../support/database';
import { engines, type Engines, record, runtimeOf, until } from '../support/projections';

/**
 * TimescaleDB cannot be installed where this was built. What stands in for it has its published names and signatures,
 * notes each call, and leaves behind what the real one leaves: an entry in the information view, a trigger of the
 * extension's, and chunks that inherit from the table.
 */
const STAND_IN = `
  create schema timescaledb_information;
  create schema _timescaledb_functions;
  create schema _timescaledb_internal;
  create function _timescaledb_functions.insert_blocker() returns trigger language plpgsql as $$ begin return new; end $$;
  -- Belongs to an extension, as the real one does.
  alter extension plpgsql add function _timescaledb_functions.insert_blocker();
  create table calls (
    n int generated always as identity, relation oid, relation_name text, time_column_name name, chunk_time_interval interval, create_default_indexes boolean
  );
  create view timescaledb_information.dimensions as
    select n.nspname as hypertable_schema, c.relname as hypertable_name, 1::bigint as dimension_number, h.time_column_name as column_name,
           'timestamptz'::regtype as column_type, 'Time'::text as dimension_type, h.chunk_time_interval as time_interval
    from calls h join pg_class c on c.oid = h.relation join pg_namespace n on n.oid = c.relnamespace;
  -- A hypertable goes with its chunks.
  create function drop_chunks_first() returns event_trigger language plpgsql as $$
  declare chunk regclass;
  begin
    if current_query() !~ '^drop table "public"."stream_samples"' or tg_tag <> 'DROP TABLE'
      or current_setting('stand_in.dropping', true) = 'on' then return; end if;
    perform set_config('stand_in.dropping', 'on', true);
    for chunk in select inhrelid from pg_inherits where inhparent = 'public.stream_samples'::regclass loop execute format('drop table %s', chunk); end loop;
    perform set_config('stand_in.dropping', 'off', true);
  end $$;
  create event trigger drop_chunks_first on ddl_command_start execute function drop_chunks_first();
  create function create_hypertable(
    relation regclass, time_column_name name, partitioning_column name = null, number_partitions integer = null,
    associated_schema_name name = null, associated_table_prefix name = null, chunk_time_interval anyelement = null::bigint,
    create_default_indexes boolean = true, if_not_exists boolean = false, partitioning_func regproc = null, migrate_data boolean = false,
    chunk_target_size text = null, chunk_sizing_func regproc = null, time_partitioning_func regproc = null
  ) returns table (hypertable_id int, schema_name name, table_name name, created boolean) language plpgsql as $$
  begin
    if (select relkind from pg_class where oid = relation) <> 'r' then raise exception 'table % is already partitioned', relation; end if;
    if exists (select from pg_inherits where inhparent = relation) then raise exception 'table % is already a hypertable', relation; end if;
    insert into calls (relation, relation_name, time_column_name, chunk_time_interval, create_default_indexes)
      values (relation, relation::text, create_hypertable.time_column_name, create_hypertable.chunk_time_interval::interval, create_hypertable.create_default_indexes);
    execute format('create trigger ts_insert_blocker before insert on %s for each row execute function _timescaledb_functions.insert_blocker()', relation);
    execute format('create table _timescaledb_internal.%I () inherits (%s)', format('_hyper_%s_1_chunk', relation::oid), relation);
    if create_hypertable.create_default_indexes then
      execute format('create index %I on %s (%I desc)', (select relname from pg_class where oid = relation) || '_' || create_hypertable.time_column_name || '_idx', relation, create_hypertable.time_column_name);
    end if;
    return query select 1, 'x'::name, 'x'::name, true;
  end $$;
  grant usage on schema timescaledb_information, _timescaledb_functions to public;
  grant usage, create on schema _timescaledb_internal to public;
  grant all on calls, timescaledb_information.dimensions to public;
`;

const sample = (minute: number) => ({
  ...record('00000000-0000-7000-8000-000000000001', 0),
  id: uuid(),
  type: 'stream:sample',
  occurred_at: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
  raw: JSON.stringify({ broadcast_id: 'b-1', viewer_count: minute, follower_count: null }),
});

describe('samples, and their rebuild', () => {
  let on: Engines;
  let t: TestDatabase;
  beforeEach(async () => {
    t = await testDatabase(20);
    on = await engines(t.db);
  });
  afterEach(() => on.close().then(() => t.drop()));

  const rows = () => t.db.query('select sampled_at, viewer_count from only stream_samples order by 1');
  const all = () => t.db.query('select sampled_at, viewer_count from stream_samples order by 1');
  const indexes = () =>
    t.db.query(
      `select indexname from pg_indexes where schemaname = 'public' and tablename = 'stream_samples' order by 1`,
    );
  const rebuildSamples = () => rebuild({ db: t.db, ...on, projections: [streamSamples], name: 'stream-samples' });

  async function fill(count: number): Promise<void> {
    await on.records.append(
      TOPICS.stream_samples,
      Array.from({ length: count }, (_, n) => sample(n)),
    );
    const runtime = runtimeOf(t.db, on, [streamSamples]);
    await runtime.start();
    await until(async () => (await all()).length === count);
    await runtime.stop();
  }

  test('where there is no extension the partitions come back, and nothing else is made of them', async () => {
    await fill(30);
    const [before] = [await all()];
    await t.db.query('update stream_samples set viewer_count = 999 where viewer_count = 3');
    await rebuildSamples();
    expect(await all()).toEqual(before);
    const [table] = await t.db.query(`select relkind from pg_class where oid = 'stream_samples'::regclass`);
    expect(table!.relkind).toBe('p');
    expect(await t.db.query('select ensure_stream_sample_partitions(2) as made')).toEqual([{ made: 0 }]);
  });

  test('the branch for the extension makes a hypertable of one day a chunk, and a rebuild makes another of the same kind', async () => {
    await t.db.query('drop table stream_samples; drop function ensure_stream_sample_partitions');
    await t.asAdmin(STAND_IN);
    // The migration's own SQL, told that the library is loaded and its extension there.
    let sql = '';
    await migration.up({ raw: async (text: string) => void (sql = text) } as unknown as Knex);
    const loaded = sql
      .replace(`current_setting('timescaledb.disable_load', true) is not null`, 'true')
      .replace('create extension timescaledb;', '');
    expect(loaded.length).toBeLessThan(sql.length - 50);
    await t.db.query(loaded);
    // Columns of a later step.
    await t.db.query('alter table stream_samples add column stream_title text, add column category text');
    const calls = () =>
      t.db.query(
        'select relation_name, time_column_name, chunk_time_interval::text, create_default_indexes from calls order by n',
      );
    const first = {
      relation_name: 'stream_samples',
      time_column_name: 'sampled_at',
      chunk_time_interval: '1 day',
      create_default_indexes: true,
    };
    expect(await calls()).toEqual([first]);

    await fill(30);
    const before = await rows();
    const structure = await indexes();
    expect(before).toHaveLength(30);
    await t.db.query('update stream_samples set viewer_count = 999 where viewer_count = 3');
    for (let round = 1; round <= 2; round += 1) {
      await rebuildSamples();
      expect(await rows()).toEqual(before);
      expect(await indexes()).toEqual(structure);
      expect(await calls()).toHaveLength(1 + round);
    }
    expect((await calls())[1]).toEqual({
      ...first,
      relation_name: 'rebuild_stream_samples.stream_samples',
      create_default_indexes: false,
    });
    // The table that serves is the one that was made last.
    const [live] = await t.db.query(
      `select relation = 'public.stream_samples'::regclass::oid as live from calls order by n desc limit 1`,
    );
    expect(live!.live).toBe(true);
    expect(
      await t.db.query(
        `select hypertable_schema from timescaledb_information.dimensions where hypertable_name = 'stream_samples'`,
      ),
    ).toEqual([{ hypertable_schema: 'public' }]);
    expect(await t.db.query('select ensure_stream_sample_partitions(2) as made')).toEqual([{ made: 0 }]);
  });
});
