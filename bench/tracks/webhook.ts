import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { v7 } from 'uuid';
import { compare, type Contender } from '../comparison';
import type { TrackOptions } from '../harness';
import { closedLoop, forEach, openLoop } from '../loops';
import { type BenchPostgres, onPostgres } from '../postgres';
import { check, report } from '../report';
import { HttpLoad, requestBytes } from '../http-load';
import { database, type Lumio, type Program, startLumio, startPeer } from '../system';

const PATH = '/v1/webhooks/trovo';
const WRITERS = 64;
/** Does the work of a delivery in Lumio by hand. */
const EQUAL = 'fastify, all in one transaction';
/** Connections to its database: all deliveries are of one account, whose head serialises them. */
const POOLS = [4, 16];
const equalOf = (connections: number) => `${EQUAL}, ${connections} connections`;

/** Makes a signed delivery of about 400 bytes with the given id. */
export function delivery(secret: string, channel_id: string, id: string): Buffer {
  const body = JSON.stringify({
    type: 'channel.subscribe',
    message_id: id,
    channel_id,
    created_at: new Date().toISOString(),
    user: { id: 100000000 + (id.charCodeAt(id.length - 1) % 50), nick_name: 'NewSub', user_name: 'newsub_login' },
    sub_tier: '1',
    months: 1,
    text: 'Thank you for the streams, they make my evenings! '.repeat(3),
  });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  return requestBytes('POST', PATH, { 'x-trovo-signature': signature }, body);
}

/**
 * Signed, deduplicated, durable deliveries through the real server with every role running (so that its projector
 * writes log, ledger and outbox on the same core meanwhile), against bare Fastify with HMAC and one INSERT per request,
 * and against the same work by hand, both on the same PostgreSQL.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const lumio = await startLumio(postgres);
  const { trovo_secret } = lumio.credentials.webhook_signing;
  const other = await startPeer('webhook', [await database(postgres, 'peer'), trovo_secret]);
  const { platform_channel_id } = lumio.credentials.connections.trovo;
  const equals = await Promise.all(
    POOLS.map(async (size) => {
      const url = await database(postgres, `peer_equal_${size}`);
      const args = [url, trovo_secret, platform_channel_id, String(size)];
      return { name: equalOf(size), program: await startPeer('webhook-equal', args) };
    }),
  );
  const loads = [
    await HttpLoad.open(lumio.base_url, WRITERS),
    await HttpLoad.open(other.base_url, WRITERS),
    ...(await Promise.all(equals.map(({ program }) => HttpLoad.open(program.base_url, WRITERS)))),
  ] as const;
  const post = async (load: HttpLoad, id: string) => {
    const { status, body } = await load.request(delivery(trovo_secret, platform_channel_id, id));
    if (status !== 200 || body.toString() !== '{"success":true}') throw new Error(`${status}: ${body.toString()}`);
  };
  const contender = (name: string, load: HttpLoad, { cpu }: Program, finish?: () => Promise<void>): Contender => ({
    name,
    cpu,
    finish,
    run: (ms) => closedLoop(WRITERS, ms, () => post(load, v7())),
  });
  try {
    const [rounds, ms] = options.smoke ? [1, 500] : [5, 4000];
    const result = await compare({
      name: `${WRITERS} connections, one signed delivery each at a time (deliveries a second)`,
      contenders: [
        contender('lumio', loads[0], lumio, () => projected(lumio)),
        contender('fastify + insert', loads[1], other),
        ...equals.map(({ name, program }, n) => contender(name, loads[n + 2]!, program)),
      ],
      subject: 'lumio',
      floors: { 'fastify + insert': 0.9 },
      rounds,
      ms,
      engineCpu: postgres.engineCpu,
      cpu_of: 'engine',
    });
    const ceiling = result.measured[0]!.median;
    await projected(lumio);
    const latencies = [];
    for (const share of [0.25, 0.5, 0.75]) {
      latencies.push({ share, ...(await openLoop(ceiling * share, ms, () => post(loads[0], v7()))) });
      await projected(lumio);
    }
    // At its best setting, by CPU and by time each.
    const by_cpu = Math.min(...result.ratios.filter(({ to }) => to.startsWith(EQUAL)).map((ratio) => ratio.by_cpu));
    const of_equal = [];
    for (const n of equals.keys()) of_equal.push(await openLoop(ceiling * 0.5, ms, () => post(loads[n + 2]!, v7())));
    const p99 = Math.min(...of_equal.map(({ p99_ms }) => p99_ms));
    console.log('\nwebhook: latency in an open loop, from the intended send time, at shares of the ceiling');
    console.table(latencies);
    const exactly = await twoPhases(lumio, (id) => post(loads[0], id), options.smoke ? 300 : 5000);
    const checks = [
      check('p99 at half the ceiling, ms', latencies[1]!.p99_ms, 50),
      check(`CPU a delivery over that of ${EQUAL}`, 1 / by_cpu, 1 / 1.5),
      check(`p99 at half the ceiling over that of ${EQUAL}`, latencies[1]!.p99_ms / p99, 1),
      check('deliveries lost or doubled in effect', exactly.wrong, 0),
    ];
    return report('webhook', [result], { latencies, two_phases: exactly, checks }, options);
  } finally {
    for (const load of loads) load.close();
    await lumio.stop();
    await other.stop();
    for (const { program } of equals) await program.stop();
  }
}

/** Waits until everything received is in the event log, for at most `most_ms`. */
export async function projected(lumio: Lumio, most_ms = 120_000): Promise<void> {
  const client = new pg.Client({ connectionString: lumio.url });
  await client.connect();
  try {
    for (const deadline = Date.now() + most_ms; ; await sleep(100)) {
      const { rows } = await client.query(`
        select count(*)::int as behind from broker_topics t join broker_partitions b using (topic_id)
          left join checkpoints c on c.projection = 'event-log' and c.source like '%' || t.topic and c.partition = b.partition
        where t.topic = 'platform-events' and b.next_offset > coalesce(nullif(c.position, '')::bigint, 0)`);
      if (rows[0].behind === 0) return;
      if (Date.now() > deadline) throw new Error(`the event log did not catch up within ${most_ms / 1000} s`);
    }
  } finally {
    await client.end();
  }
}

/** Delivers every id, a third of them twice and some concurrently; then counts how often each took effect. */
async function twoPhases(lumio: Lumio, post: (id: string) => Promise<void>, count: number) {
  const ids = Array.from({ length: count }, () => `two-phases-${v7()}`);
  const sends = ids.flatMap((id, n) => (n % 3 === 0 ? [id, id] : [id]));
  await forEach(sends, WRITERS, post);
  await sleep(200);
  await projected(lumio);
  const client = new pg.Client({ connectionString: lumio.url });
  await client.connect();
  const { rows } = await client.query(
    `select count(*) filter (where n <> 1)::int as wrong, count(*)::int as asked from (
       select (select count(*) from platform_event_logs l where l.external_id = 'trovo:' || wanted) as n from unnest($1::text[]) wanted) each`,
    [ids],
  );
  await client.end();
  return { ids: count, deliveries: sends.length, wrong: rows[0].wrong as number };
}
