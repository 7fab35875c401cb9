import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { v7 } from 'uuid';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import type { EventStore } from '../../engines/event-store/port';
import { migrate } from '../../engines/postgres/migrate';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { type CaseResult, compare, type Contender } from '../comparison';
import { peer, peerFolder, type TrackOptions } from '../harness';
import { closedLoop, openLoop } from '../loops';
import { type BenchPostgres, onPostgres } from '../postgres';
import { report } from '../report';

const TYPE = 'api_key:created';
const METADATA = { actor_kind: 'user', actor_id: v7(), account_id: v7(), correlation_id: v7() };
const data = () => ({
  key_id: v7(),
  user_id: v7(),
  label: 'Stream deck on the desk',
  key_hash: 'f'.repeat(64),
  permissions: ['events:read', 'chat:read'],
});

interface EmmettStore {
  appendToStream(
    stream: string,
    events: { type: string; data: object; metadata?: object }[],
    options: { expectedStreamVersion: bigint | 'STREAM_DOES_NOT_EXIST' },
  ): Promise<{ nextExpectedStreamVersion: bigint }>;
  close(): Promise<void>;
  schema: { migrate(): Promise<unknown> };
}

/**
 * Appends with an expected revision, each writer on streams of its own, against: the same rows by plain INSERT (a
 * statement per append, INSERT..SELECT for many events), emmett-postgresql and message-db. All durable, all checked by
 * the revision that they answer. emmett 0.42.0 lets two "must not exist" appends succeed and its subscription can pass
 * by a late commit, so it does less work.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  const at = async (name: string) => {
    await admin.query(`create database ${name}`);
    return postgres.url.replace('/lumio?', `/${name}?`);
  };
  const own_url = await at('own');
  await migrate(own_url);
  const pool = openPool({ connectionString: own_url, max: 4 });
  const store = await createPostgresEventStore({ pool, wakeups: createLocalWakeups() });
  const raw = await rawTable(await at('raw'));
  const messages = await messageDb(await at('message_db'), admin);
  const emmett_url = await at('emmett');
  const emmett_pool = openPool({ connectionString: emmett_url, max: 64 });
  const emmett = peer<Emmett>('@event-driven-io/emmett-postgresql').getPostgreSQLEventStore(emmett_url, {
    connectionOptions: { pool: emmett_pool },
  });
  await emmett.schema.migrate();

  const [rounds, ms] = options.smoke ? [1, 300] : [5, 3000];
  const results: CaseResult[] = [];
  const cases: { writers: number; events: number; floors: Record<string, number> }[] = [
    { writers: 1, events: 1, floors: { emmett: 1, 'message-db': 1 } },
    { writers: 8, events: 1, floors: {} },
    { writers: 64, events: 1, floors: { emmett: 5, 'message-db': 5, insert: 1.3 } },
    { writers: 1, events: 100, floors: { insert: 0.5 } },
    { writers: 8, events: 100, floors: { insert: 0.5 } },
  ];
  for (const { writers, events, floors } of cases) {
    const contenders = [
      own(store, writers, events),
      insert(raw, writers, events),
      emmettStore(emmett, writers, events),
    ];
    if (events === 1) contenders.push(messageStore(messages, writers));
    const name = `${writers} writer${writers > 1 ? 's' : ''}, ${events} event${events > 1 ? 's' : ''} an append (appends a second)`;
    results.push(
      await compare({ name, contenders, subject: 'lumio', floors, rounds, ms, engineCpu: postgres.engineCpu }),
    );
  }

  const ceiling = results[2]!.measured[0]!.median;
  const latencies = [];
  for (const share of [0.25, 0.5, 0.75]) {
    const streams = v7();
    const unit = async (n: number) => {
      await store.append(
        [{ stream: `${streams}-${n}`, expected: 'none', events: [{ id: v7(), type: TYPE, data: data() }] }],
        METADATA,
      );
    };
    latencies.push({ share, ...(await openLoop(ceiling * share, ms, unit)) });
  }
  console.log('\nappend: latency in an open loop, from the intended start, at shares of the 64-writer ceiling');
  console.table(latencies);

  await store.close();
  await emmett.close();
  for (const open of [pool, raw, messages, emmett_pool]) await open.end();
  await admin.end();
  return report('append', results, { latencies, durability: 'fsync=on, synchronous_commit=on for all' }, options);
}

interface Emmett {
  getPostgreSQLEventStore(url: string, options: { connectionOptions: { pool: pg.Pool } }): EmmettStore;
}

/** Ignores connections that end after their pool. */
function openPool(options: pg.PoolConfig): pg.Pool {
  return new pg.Pool(options).on('error', () => undefined);
}

/** Streams are new in each run, so that every contender starts at revision none and grows alike. */
function contender(
  name: string,
  writers: number,
  append: (stream: string, n: number) => Promise<number>,
  events: number,
): Contender {
  return {
    name,
    run(ms) {
      const prefix = v7();
      return closedLoop(writers, ms, async (writer, n) => {
        const revision = await append(`thing-${prefix}${writer}`, n);
        if (revision !== (n + 1) * events - 1) throw new Error(`${name}: append ${n} answered revision ${revision}`);
      });
    },
  };
}

const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

function own(store: EventStore, writers: number, events: number): Contender {
  const append = async (stream: string, n: number) => {
    const expected = n === 0 ? 'none' : n * events - 1;
    const written = many(events, () => ({ id: v7(), type: TYPE, data: data() }));
    return (await store.append([{ stream, expected, events: written }], METADATA)).revisions[stream]!;
  };
  return contender('lumio', writers, append, events);
}

async function rawTable(url: string): Promise<pg.Pool> {
  const pool = openPool({ connectionString: url, max: 64 });
  await pool.query(`create table events (position bigserial primary key, stream text collate "C" not null, revision bigint not null, id uuid not null unique,
    type text collate "C" not null, data json not null, metadata json not null, recorded_at timestamptz not null default now(), unique (stream, revision))`);
  return pool;
}

function insert(pool: pg.Pool, writers: number, events: number): Contender {
  const single =
    'insert into events (stream, revision, id, type, data, metadata) values ($1, $2, $3, $4, $5, $6) returning revision::int';
  const several = `insert into events (stream, revision, id, type, data, metadata)
    select $1, $2::bigint + n - 1, id, type, data::json, $6::json from unnest($3::uuid[], $4::text[], $5::text[]) with ordinality as u (id, type, data, n) returning revision::int`;
  const append = async (stream: string, n: number) => {
    const metadata = JSON.stringify(METADATA);
    const written = many(events, () => ({ id: v7(), data: JSON.stringify(data()) }));
    const { rows } = await (events === 1
      ? pool.query({ name: 'one', text: single, values: [stream, n, written[0]!.id, TYPE, written[0]!.data, metadata] })
      : pool.query({
          name: 'many',
          text: several,
          values: [
            stream,
            n * events,
            written.map(({ id }) => id),
            written.map(() => TYPE),
            written.map((event) => event.data),
            metadata,
          ],
        }));
    return rows[rows.length - 1].revision as number;
  };
  return contender('insert', writers, append, events);
}

function emmettStore(store: EmmettStore, writers: number, events: number): Contender {
  const append = async (stream: string, n: number) => {
    const written = many(events, () => ({ type: TYPE, data: data(), metadata: METADATA }));
    const expectedStreamVersion = n === 0 ? 'STREAM_DOES_NOT_EXIST' : BigInt(n * events);
    const { nextExpectedStreamVersion } = await store.appendToStream(stream, written, { expectedStreamVersion });
    return Number(nextExpectedStreamVersion) - 1;
  };
  return contender('emmett', writers, append, events);
}

/**
 * Installs message-db from its package, as its install.sh does; pgcrypto is left out, since PostgreSQL makes UUIDs
 * itself by now.
 */
async function messageDb(url: string, admin: pg.Client): Promise<pg.Pool> {
  const folder = join(peerFolder('@eventide/message-db'), 'database');
  const sql = (...path: string[]) => readFileSync(join(folder, ...path), 'utf8');
  await admin.query(sql('roles/message-store.sql'));
  const pool = openPool({ connectionString: url, max: 64, options: '-c search_path=message_store,public' });
  await pool.query(sql('schema/message-store.sql'));
  await pool.query(sql('tables/messages.sql'));
  await pool.query(sql('types/message.sql'));
  await pool.query('set check_function_bodies = off');
  for (const part of ['functions', 'indexes']) {
    for (const file of readdirSync(join(folder, part)).sort())
      await pool.query(sql(part, file).replace(/CONCURRENTLY/gi, ''));
  }
  return pool;
}

function messageStore(pool: pg.Pool, writers: number): Contender {
  const text = 'select write_message($1, $2, $3, $4::jsonb, $5::jsonb, $6)::int as revision';
  const append = async (stream: string, n: number) => {
    const { rows } = await pool.query({
      name: 'write',
      text,
      values: [v7(), stream, TYPE, JSON.stringify(data()), JSON.stringify(METADATA), n - 1],
    });
    return rows[0].revision as number;
  };
  return contender('message-db', writers, append, 1);
}
