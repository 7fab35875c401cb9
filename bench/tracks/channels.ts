import { setTimeout as sleep } from 'node:timers/promises';
import { v7 } from 'uuid';
import { textArray } from '../../engines/postgres/port';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import { ask } from '../history';
import { rounded, type TrackOptions } from '../harness';
import { type BenchPostgres, onPostgres } from '../postgres';
import { nowUs, Receivers, stamped } from '../receivers';
import { check, report } from '../report';
import { startLumio } from '../system';
import { lumioClients } from '../ws-load';

/** Channels per socket; the limit is 256. */
const CHANNELS_A_SOCKET = 200;
/** Transactions per second that write the messages. */
const BATCHES = 20;

/**
 * Many channels with one to three subscribers each, one stored message per second on each: time from the transaction
 * that writes it to its frames, and the cost of a delivery for node and database. Each delivery is counted.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const [count, seconds] = options.smoke ? [500, 2] : [10_000, 30];
  const lumio = await startLumio(postgres, 'lumio_channels');
  const accounts = Array.from({ length: count }, () => v7());
  const enabled = `insert into account_feature_overrides select given, 'feature:events', true, now() from unnest($1::uuid[]) given`;
  await ask(lumio.url, enabled, [accounts]);
  const names = accounts.map((account) => `events:${account}`);
  // Of each three channels one has one subscriber, one two, and one three.
  const subscriptions = names.flatMap((name, n) => Array<string>(1 + (n % 3)).fill(name));
  const sockets = Math.ceil(subscriptions.length / CHANNELS_A_SOCKET);
  const each = Array.from({ length: sockets }, (_, socket) => {
    const own = subscriptions.filter((_name, n) => n % sockets === socket);
    const subscribes = own.map((channel) => JSON.stringify({ type: 'subscribe', channel }));
    return { hello: subscribes, ready: `"channel":"${own.at(-1)!}"` };
  });
  const header = `authorization: Bearer ${lumio.credentials.system_key}`;
  const db = new PostgresDatabase({ url: lumio.url, name: 'publisher', size: 2 });
  const wakeups = createPostgresWakeups({ url: lumio.url });
  let receivers: Receivers | undefined;
  try {
    const wire = { ...lumioClients(names[0]!), path: '/v1/ws' };
    receivers = await Receivers.open(lumio.base_url, sockets, wire, Array<string>(sockets).fill(header), each);
    const write = async (batch: readonly string[]) => {
      const at = nowUs();
      await db.query('select outbox_write($1, $2, $3)', [
        textArray(batch),
        textArray(batch.map(() => 'kick:follower')),
        textArray(batch.map(() => stamped(at, 300))),
      ]);
      wakeups.notify('outbox');
    };
    const [own, engine, started] = [lumio.cpu(), postgres.engineCpu(), performance.now()];
    for (let n = 0; n < seconds * BATCHES; n += 1) {
      const from = ((n % BATCHES) * count) / BATCHES;
      const wait = started + (n * 1_000) / BATCHES - performance.now();
      if (wait > 0) await sleep(wait);
      await write(names.slice(from, from + count / BATCHES));
    }
    const took_s = (performance.now() - started) / 1_000;
    const wanted = subscriptions.length * seconds;
    let received = await receivers.received();
    for (const deadline = Date.now() + 15_000; received.count < wanted && Date.now() < deadline; await sleep(50))
      received = await receivers.received();
    const row = {
      channels: count,
      messages_a_second: Math.round((count * seconds) / took_s),
      deliveries_a_second: Math.round(wanted / took_s),
      p50_ms: received.p50_ms,
      p99_ms: received.p99_ms,
      node_us_a_delivery: rounded((lumio.cpu() - own) / wanted),
      database_us_a_message: rounded((postgres.engineCpu() - engine) / (count * seconds)),
      node_core: rounded((lumio.cpu() - own) / 1e6 / took_s),
    };
    console.log('\nchannels: one message a second on each');
    console.table([row]);
    const checks = [check('messages missing or too many', Math.abs(received.count - wanted), 0)];
    return report('channels', [], { row, checks }, options);
  } finally {
    receivers?.close();
    await wakeups.close();
    await db.close();
    await lumio.stop();
  }
}
