import { v7 } from 'uuid';
import { migrate } from '../../engines/postgres/migrate';
import { PostgresDatabase } from '../../engines/postgres/pool';
import type { ChannelMessage } from '../../kernel/projection';
import { shardOf } from '../../lib/hash/shards';
import { outboxStatement, writeOutbox } from '../../projections/runtime/outbox/outbox';
import { ONE_ORDER } from '../../projections/runtime/outbox/order';
import { rotateOutboxPartitions } from '../../projections/runtime/outbox/partitions';
import { SubscribedChannels } from '../../realtime/runtime/delivery/subscribed-channels';
import { Outbox, type PageBounds } from '../../realtime/runtime/delivery/outbox';
import { compare, timed } from '../comparison';
import { median, rounded, type TrackOptions } from '../harness';
import { closedLoop } from '../loops';
import { type BenchPostgres, onPostgres } from '../postgres';
import { check, report } from '../report';
import { database } from '../system';

const PROJECTORS = [1, 2, 4] as const;
const MESSAGES = 10;
const DATA = JSON.stringify({ n: 1, pad: 'x'.repeat(286) });
/** Longer than a run, so that nothing is dropped meanwhile. */
const KEEP_MS = 24 * 3_600_000;
/** Page bounds of a realtime node. */
const PAGE: PageBounds = { messages: 1_000, bytes: 8 * 1024 * 1024 };

/**
 * Commits per second of one, two and four projectors, each with accounts of partitions of its own: by shards, and under
 * the single lock of earlier releases. Also a node's cost of a message without subscribers: per row in full pages, and
 * per statement, which small pages share among few rows.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const [rounds, ms] = options.smoke ? [1, 200] : [5, 1_000];
  const url = await database(postgres, 'outbox');
  await migrate(url);
  const db = new PostgresDatabase({ url, name: 'projector', size: Math.max(...PROJECTORS), pipeline: true });
  try {
    await rotateOutboxPartitions(db, KEEP_MS);
    const results = [];
    for (const projectors of PROJECTORS) {
      const contenders = [commits(db, '64 shards', projectors), commits(db, 'one lock', projectors)];
      const name = `${projectors} projector${projectors > 1 ? 's' : ''}, ${MESSAGES} messages a commit (commits a second)`;
      const floors: Record<string, number> = projectors > 2 ? { 'one lock': 1 } : {};
      const { engineCpu } = postgres;
      results.push(await compare({ name, contenders, subject: '64 shards', floors, rounds, ms, engineCpu }));
    }
    const [one, , four] = results.map(({ measured }) => measured[0]!.median);
    const costs = await unheard(db, postgres, options);
    const dearest = Math.max(...costs.rows.map(({ node_us }) => node_us));
    const checks = [
      check("a row that nobody hears: microseconds of the node's CPU in full pages", dearest, 1),
      check('messages missing or too many', costs.wrong, 0),
    ];
    return report('outbox', results, { four_against_one: rounded(four! / one!), ...costs, checks }, options);
  } finally {
    await db.close();
  }
}

/** Projectors that each write to accounts in shards of their own. */
function commits(db: PostgresDatabase, name: '64 shards' | 'one lock', projectors: number) {
  const channels: string[][] = Array.from({ length: projectors }, () => []);
  while (channels.some((own) => own.length < MESSAGES)) {
    const channel = `events:${v7()}`;
    const own = channels[shardOf(channel) % projectors]!;
    if (own.length < MESSAGES) own.push(channel);
  }
  const batches = channels.map((own) => own.map(message));
  return {
    name,
    async run(ms: number) {
      await db.query('delete from installation where name = $1', [ONE_ORDER]);
      if (name === 'one lock')
        await db.query(`insert into installation (name, value) values ($1, 'kept')`, [ONE_ORDER]);
      const done = await closedLoop(projectors, ms, (projector) =>
        db.transaction(
          async () => undefined,
          () => outboxStatement(batches[projector]!),
        ),
      );
      await db.query('delete from installation where name = $1', [ONE_ORDER]);
      return done;
    },
  };
}

const message = (channel: string): ChannelMessage => ({ channel, event_type: 'kick:follower', data: DATA });

/**
 * Cost of reading messages without subscribers, by the number of other subscribed names, and by the size of the pages.
 */
async function unheard(db: PostgresDatabase, postgres: BenchPostgres, { smoke }: TrackOptions) {
  const [batches, rounds, looks] = smoke ? [5, 1, 20] : [100, 5, 1_000];
  const outbox = new Outbox(db, KEEP_MS);
  const start = await outbox.end();
  const channels = Array.from({ length: 200 }, () => `events:${v7()}`);
  const batch = Array.from({ length: PAGE.messages }, (_, n) => message(channels[n % channels.length]!));
  for (let n = 0; n < batches; n += 1) await db.transaction((tx) => writeOutbox(tx, batch));
  const written = batches * PAGE.messages;
  let wrong = 0;

  const readAll = async (filter: Buffer): Promise<number> => {
    let read = 0;
    for (let after = start; ;) {
      const page = await outbox.tail(after, filter, PAGE);
      read += page.messages;
      after = page.places;
      if (!page.more) return read;
    }
  };
  const rows = [];
  for (const names of [0, 100, 10_000]) {
    const filter = filterOf(names);
    const each: number[] = [];
    await readAll(filter);
    for (let round = 0; round < rounds; round += 1) {
      const { units, client_us } = await timed(postgres.engineCpu, () => readAll(filter));
      wrong += Math.abs(units - written);
      each.push(client_us / units);
    }
    rows.push({ names, node_us: rounded(median(each)) });
  }
  console.log('\noutbox: a row that nobody hears, in full pages');
  console.table(rows);

  // The newest messages of one shard: all others are at their end.
  const end = await outbox.end();
  const shard = shardOf(channels[0]!);
  const own = await db.query<{ id: number }>('select id from outbox where shard = $1 and id > $2 order by id desc', [
    shard,
    start[shard]!,
  ]);
  const filter = filterOf(100);
  const look = async (messages: number) => {
    const after = end.map((place, at) => (at === shard ? own[messages]!.id : place));
    wrong += Math.abs((await outbox.tail(after, filter, PAGE)).messages - messages);
  };
  const statements: Record<string, () => Promise<unknown>> = {
    'nothing but a constant': () => db.query('select 1 as one', [], 'bench_one'),
    'where it ends': () => outbox.end(),
    'a page of nothing': () => outbox.tail(end, filter, PAGE),
    'a page of 1': () => look(1),
    'a page of 10': () => look(10),
  };
  const pages = [];
  for (const [name, ask] of Object.entries(statements)) {
    await closedLoop(1, 50, () => ask().then(() => undefined));
    const { client_us, engine_us } = await timed(postgres.engineCpu, async () => {
      for (let n = 0; n < looks; n += 1) await ask();
      return looks;
    });
    pages.push({ name, node_us: rounded(client_us / looks), database_us: rounded(engine_us / looks) });
  }
  console.log('\noutbox: a statement, whatever it brings');
  console.table(pages);
  return { rows, pages, wrong };
}

/** Filter of a node with `names` other subscribed channels. */
function filterOf(names: number): Buffer {
  const heard = new SubscribedChannels<true>();
  for (let n = 0; n < names; n += 1) heard.set(`events:${v7()}`, true);
  return heard.filter();
}
