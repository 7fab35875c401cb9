import { v5 } from 'uuid';
import { createPostgresBroker } from '../../engines/broker/postgres';
import { createPostgresShares } from '../../engines/leases/shares';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { ProcessSession } from '../../engines/postgres/process-session';
import { createRecordLog } from '../../engines/records/log';
import { parseMasterKeys } from '../../engines/secrets/master-keys';
import { createSubjectKeys } from '../../engines/subject-keys/postgres';
import { createPersonalTexts } from '../../engines/subject-keys/texts';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import { startAdapters } from '../../ingest/runtime/adapters';
import { createLinkLeases } from '../../ingest/runtime/link-leases';
import { createParkedWebhooks } from '../../ingest/runtime/parked';
import { createTwitchAdapter } from '../../ingest/twitch/adapter';
import { createTwitch } from '../../vendors/twitch/api';
import { createHttpClients } from '../../vendors/http/client';
import { quiet } from '../harness';

const NAMESPACE = '6f1f2a0e-6f0c-4a8e-9d5c-0b1f6a3b7c11';
const MASTER_KEYS = `bench:${Buffer.alloc(32, 1).toString('base64')}`;

/** A process with the role `worker` that holds so many channels: `eventsub-worker.js DATABASE ADDRESS COUNT`. */
async function main([url = '', address = '', count = '1']: string[]): Promise<void> {
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
    client_id: 'bench',
  }));
  const running = startAdapters({
    adapters: [
      createTwitchAdapter({
        twitch: createTwitch(http, { ...addresses, allow_loopback: true }),
        client_id: undefined,
        metrics,
      }),
    ],
    connections: { list: () => Promise.resolve(held), onChange: () => () => undefined },
    token: () => Promise.resolve('token'),
    refused: () => Promise.resolve(),
    shares: createPostgresShares({ db, session, wakeups, log: quiet }),
    leases: createLinkLeases(db, session),
    records: createRecordLog({ broker, subject_keys }),
    parked: createParkedWebhooks({ db, texts: createPersonalTexts(subject_keys) }),
    log: quiet,
    metrics,
  });
  for (;;) {
    const [row] = await db.query<{ n: number }>(`select count(*) as n from adapter_links where status = 'connected'`);
    if (Number(row!.n) === held.length) break;
    await new Promise((resume) => setTimeout(resume, 100));
  }
  process.stdout.write('worker ready at http://127.0.0.1:0\n');
  process.once('SIGTERM', () => void running.stop().then(() => process.exit(0)));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
