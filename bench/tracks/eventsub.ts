import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { TOPICS } from '../../domain/common/records';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import { migrate } from '../../engines/postgres/migrate';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { SUBSCRIPTIONS } from '../../ingest/twitch/subscriptions';
import { EventSubFake } from '../eventsub-fake';
import { median, rounded, type TrackOptions } from '../harness';
import { type BenchPostgres, onPostgres } from '../postgres';
import { check, report } from '../report';
import { database, type Program, startPeer } from '../system';

/** Shards of the conduit, as by default. */
const SHARDS = 4;
type Transport = 'conduit' | 'sockets';

/** Load of a round, equal for all. */
interface Load {
  /** Channels, and sockets where each channel has one. */
  sockets: number;
  per_second: number;
  ms: number;
}

/**
 * Notifications of Twitch for many channels, over a conduit as by default and over a socket per channel: CPU of the
 * worker per notification, including durable storage, against sockets that only parse. PostgreSQL's own cost is on core
 * 0 and reported separately.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const load: Load = options.smoke
    ? { sockets: 40, per_second: 500, ms: 1_500 }
    : { sockets: 1_000, per_second: 5_000, ms: 60_000 };
  const rounds = options.smoke ? 1 : 3;
  const bare: number[] = [];
  const found: Record<Transport, Measured[]> = { conduit: [], sockets: [] };
  for (let round = 0; round < rounds; round += 1) {
    bare.push(await bareRound(load));
    for (const transport of ['conduit', 'sockets'] as const)
      found[transport].push(await ourRound(postgres, `eventsub_${transport}_${round}`, load, transport));
  }
  const checks = [];
  const figures = [];
  for (const [transport, measured] of Object.entries(found)) {
    const ratios = measured.map(({ own_us }, round) => own_us / bare[round]!);
    const grown = measured.map((one) => one.grown);
    const missing = measured.reduce((sum, one) => sum + one.missing, 0);
    const cost = {
      ours_us: measured.map(({ own_us }) => rounded(own_us)),
      bare_us: bare.map(rounded),
      engine_us: measured.map(({ engine_us }) => rounded(engine_us)),
    };
    console.log(`\neventsub over ${transport}: CPU a notification, each round`, cost);
    figures.push({ transport, cost, ratios: ratios.map(rounded), grown: grown.map(rounded) });
    checks.push(check(`records that are missing or too many, ${transport}`, missing, 0));
    if (options.smoke) continue;
    checks.push(check(`CPU against sockets that only parse, ${transport}`, median(ratios), 5));
    checks.push(check(`memory at the end against a quarter of the way, ${transport}`, Math.max(...grown), 1.25));
  }
  return report('eventsub', [], { load, figures, checks }, options);
}

interface Measured {
  own_us: number;
  engine_us: number;
  grown: number;
  missing: number;
}

/** CPU microseconds per notification. */
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

async function ourRound(postgres: BenchPostgres, name: string, load: Load, transport: Transport): Promise<Measured> {
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
  const shards = transport === 'conduit' ? SHARDS : 0;
  const program = await startPeer('eventsub-worker', [url, fake.address, String(load.sockets), String(shards)]);
  try {
    if (transport === 'sockets' && fake.subscriptions !== load.sockets * SUBSCRIPTIONS.length)
      throw new Error('not everything was subscribed');
    // Sockets of channels that waited too long for the conduit are closed after a while.
    while (transport === 'conduit' && fake.sockets > SHARDS) await sleep(50);
    // Warm-up: creates the keys of persons and compiles the code.
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
