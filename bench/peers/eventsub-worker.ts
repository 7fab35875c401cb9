import { v5 } from 'uuid';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import { createPostgresLeases } from '../../engines/leases/postgres';
import { createPostgresShares } from '../../engines/leases/shares';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { ProcessSession } from '../../engines/postgres/process-session';
import { createRecordLog } from '../../engines/records/log';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import type { Adapter } from '../../ingest/runtime/connection/adapter';
import { startAdapters } from '../../ingest/runtime/connection/adapters';
import { createLinkLeases } from '../../ingest/runtime/connection/link-leases';
import { createParkedWebhooks } from '../../ingest/runtime/parked/parked';
import { createTwitchAdapter } from '../../ingest/twitch/adapter';
import { Conduits } from '../../ingest/twitch/conduit/conduits';
import { startConduitKeeper } from '../../ingest/twitch/conduit/keeper';
import { offerConduits } from '../../ingest/twitch/conduit/offer';
import { createShardAdapter } from '../../ingest/twitch/conduit/shard';
import { createTwitch } from '../../vendors/twitch/api';
import { createTwitchConduits } from '../../vendors/twitch/conduits';
import { createHttpClients } from '../../vendors/http/client';
import { OVER_CONDUIT } from '../eventsub-fake';
import { quiet } from '../harness';

const NAMESPACE = '6f1f2a0e-6f0c-4a8e-9d5c-0b1f6a3b7c11';
const APP = 'bench';
const MASTER_KEYS = `bench:${Buffer.alloc(32, 1).toString('base64')}`;

/**
 * A process with the role `worker` that holds COUNT channels, over as many sockets or over a conduit of SHARDS shards:
 * `eventsub-worker.js DATABASE ADDRESS COUNT [SHARDS]`.
 */
async function main([url = '', address = '', count = '1', shards = '0']: string[]): Promise<void> {
  const db = new PostgresDatabase({ url, name: 'worker', size: 8, pipeline: true });
  const log_db = new PostgresDatabase({ url, name: 'log', size: 6 });
  const wakeups = createPostgresWakeups({ url });
  const metrics = createPrometheusMetrics({});
  const session = new ProcessSession({ connectionString: url }, quiet);
  const broker = createPostgresBroker({ pool: log_db.pool, wakeups, session });
  const subject_keys = createSubjectKeys({ db: log_db, master_keys: parseMasterKeys(MASTER_KEYS) });
  const http = createHttpClients({ metrics, allow_loopback: true });
  const addresses = { api_url: `http://${address}`, id_url: `http://${address}`, eventsub_url: `ws://${address}/ws` };
  const held = Array.from({ length: Number(count) }, (_, n) => ({
    connection_id: v5(`connection ${n}`, NAMESPACE),
    account_id: v5(`account ${n}`, NAMESPACE),
    channel_id: String(1_000_000 + n),
    client_id: APP,
  }));
  const connections = { list: () => Promise.resolve(held), onChange: () => () => undefined };
  const work = createPostgresShares({ db, session, wakeups, log: quiet });
  const twitch = createTwitch(http, { ...addresses, allow_loopback: true });
  const refused = () => Promise.resolve();
  const conduits =
    Number(shards) === 0
      ? undefined
      : new Conduits({
          ...{ db, wakeups, connections, log: quiet },
          twitch: createTwitchConduits(http, addresses),
          app: () => Promise.resolve({ client_id: APP, client_secret: 'secret' }),
        }).start();
  if (conduits !== undefined) {
    offerConduits(work);
    startConduitKeeper({
      ...{ conduits, metrics, leases: createPostgresLeases({ db, log: quiet }), shard_count: Number(shards) },
      connectionsBehind: () => Promise.resolve(false),
    });
  }
  const running = startAdapters({
    adapters: [
      createTwitchAdapter({ twitch, client_id: undefined, conduits, metrics }) as Adapter,
      ...(conduits === undefined ? [] : [createShardAdapter({ conduits, twitch, refused }) as Adapter]),
    ],
    ...{ connections, refused, shares: work },
    token: () => Promise.resolve('token'),
    leases: createLinkLeases(db, session),
    records: createRecordLog({ broker, subject_keys }),
    parked: createParkedWebhooks({ db, texts: createPersonalTexts(subject_keys) }),
    log: quiet,
    metrics,
  });
  for (;;) {
    const [row] = await db.query<{ links: string; covered: string }>(
      `select (select count(*) from adapter_links where status = 'connected') as links,
         (select count(*) from twitch_conduit_subscriptions where subscription_id is not null) as covered`,
    );
    const covered = conduits === undefined ? 0 : held.length * OVER_CONDUIT;
    if (Number(row!.links) === held.length + Number(shards) && Number(row!.covered) === covered) break;
    await new Promise((resume) => setTimeout(resume, 100));
  }
  process.stdout.write('worker ready at http://127.0.0.1:0\n');
  process.once('SIGTERM', () => void running.stop().then(() => process.exit(0)));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
