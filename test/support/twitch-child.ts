import { createPostgresBroker } from '../../engines/broker/postgres';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createRecordLog } from '../../engines/records/log';
import { createSubjectKeys } from '../../engines/subject-keys/postgres';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import type { LivingConnection } from '../../ingest/runtime/adapter';
import { silentLog } from './log';
import { startWorker, TEST_KEYS } from './twitch';

/**
 * A process of its own that holds connections to the fake, to be killed and paused by a test.
 * Usage: node twitch-child.js '{"url", "base_url", "eventsub_url", "connections", "tokens"}'
 */
function main([given]: string[]): void {
  const { url, base_url, eventsub_url, connections, tokens } = JSON.parse(given!) as {
    url: string;
    base_url: string;
    eventsub_url: string;
    connections: LivingConnection[];
    tokens: Record<string, string>;
  };
  const db = new PostgresDatabase({ url, name: 'child', size: 6 });
  const wakeups = createPostgresWakeups({ url });
  const subject_keys = createSubjectKeys({ db, master_keys: TEST_KEYS });
  const worker = startWorker({
    db,
    url,
    twitch: { base_url, eventsub_url },
    connections: {
      list: () => Promise.resolve(connections),
      onChange: () => () => undefined,
      token: ({ connection_id }) => Promise.resolve(tokens[connection_id]!),
      refused: [],
    },
    records: createRecordLog({ broker: createPostgresBroker({ pool: db.pool, wakeups }), subject_keys }),
    log: silentLog,
    timings: {},
    wakeups,
    heartbeat_ms: 1_000,
  });
  process.once('SIGTERM', () => void worker.stop().then(() => process.exit(0)));
  process.stdout.write('running\n');
}

main(process.argv.slice(2));
