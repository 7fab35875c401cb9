import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { TOPICS } from '../../domain/records';
import { createPostgresBroker } from '../../engines/broker/postgres';
import { migrate } from '../../engines/postgres/migrate';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { SUBSCRIPTIONS } from '../../ingest/twitch/subscriptions';
import { EventSubFake } from '../eventsub-fake';
import { median, rounded, type TrackOptions } from '../harness';
import { type BenchPostgres, onPostgres } from '../postgres';
import { check, report } from '../report';
import { database, type Program, startPeer } from '../system';

/** What both do in a round. */
interface Load {
  sockets: number;
  per_second: number;
  ms: number;
}

/**
 * Notifications of Twitch over many sockets, one a channel: CPU of the worker for each, durable hand-over included,
 * against sockets that only parse. Both send to core 0, where PostgreSQL's own cost is shown beside it.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const load: Load = options.smoke
    ? { sockets: 40, per_second: 500, ms: 1_500 }
    : { sockets: 1_000, per_second: 5_000, ms: 60_000 };
  const rounds = options.smoke ? 1 : 3;
  const [ours, bare, engine, grown]: [number[], number[], number[], number[]] = [[], [], [], []];
  let missing = 0;
  for (let round = 0; round < rounds; round += 1) {
    bare.push(await bareRound(load));
    const found = await ourRound(postgres, `eventsub_${round}`, load);
    ours.push(found.own_us);
    engine.push(found.engine_us);
    grown.push(found.grown);
    missing += found.missing;
  }
  const ratios = ours.map((one, round) => one / bare[round]!);
  const cost = { ours_us: ours.map(rounded), bare_us: bare.map(rounded), engine_us: engine.map(rounded) };
  console.log(`\neventsub: CPU a notification, each round`, cost);
  const checks = [
    check('records that are missing or too many', missing, 0),
    ...(options.smoke
      ? []
      : [
          check('CPU against sockets that only parse', median(ratios), 5),
          check('memory at the end against a quarter of the way', Math.max(...grown), 1.25),
        ]),
  ];
  return report(
    'eventsub',
    [],
    { load, cost, ratios: ratios.map(rounded), grown: grown.map(rounded), checks },
    options,
  );
}

/** Microseconds of CPU for each notification. */
async function bareRound(load: Load): Promise<number> {
  const fake = await new EventSubFake().start();
  const program = await startPeer('eventsub-bare', [fake.address, String(load.sockets)]);
  try {
    const before = program.cpu();
    const sent = await fake.send(load.per_second, load.ms);
    await sleep(200);
    return (program.cpu() - before) / sent;
  } finally {
    await program.stop();
    await fake.stop();
  }
}

async function ourRound(postgres: BenchPostgres, name: string, load: Load) {
  const url = await database(postgres, name);
  await migrate(url);
  const db = new PostgresDatabase({ url, name: 'counter', size: 2 });
  const broker = createPostgresBroker({ pool: db.pool, wakeups: createLocalWakeups() });
  const topics = [TOPICS.platform_events, TOPICS.chat_events];
  await broker.ensureTopics(topics, 8);
  const stored = async () => {
    const ends = await Promise.all(topics.map((topic) => broker.bounds(topic)));
    return ends.flatMap((bounds) => [...bounds.values()]).reduce((sum, { next }) => sum + next, 0);
  };
  const fake = await new EventSubFake().start();
  const program = await startPeer('eventsub-worker', [url, fake.address, String(load.sockets)]);
  try {
    if (fake.subscriptions !== load.sockets * SUBSCRIPTIONS.length) throw new Error('not everything was subscribed');
    // Keys of persons are made once, and what is compiled is compiled.
    let sent = await fake.send(load.per_second, load.ms / 10);
    await sleep(500);
    const [own, engine, begun] = [program.cpu(), postgres.engineCpu(), sent];
    sent += await fake.send(load.per_second, load.ms / 4);
    const early = residentBytes(program);
    sent += await fake.send(load.per_second, (load.ms * 3) / 4);
    const give_up_at = Date.now() + 20_000;
    while ((await stored()) < sent && Date.now() < give_up_at) await sleep(50);
    const notifications = sent - begun;
    return {
      own_us: (program.cpu() - own) / notifications,
      engine_us: (postgres.engineCpu() - engine) / notifications,
      grown: residentBytes(program) / early,
      missing: Math.abs(sent - (await stored())),
    };
  } finally {
    await program.stop();
    await fake.stop();
    await broker.close();
    await db.close();
  }
}

function residentBytes({ pid }: Program): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kilobytes) * 1024;
}
