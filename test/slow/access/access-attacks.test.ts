import { readFileSync } from 'node:fs';
import { v5, v7 } from 'uuid';
import { profileStream } from '../../../domain/identity/profiles';
import { userPreferenceStream } from '../../../domain/identity/user-preferences';
import { createPostgresEventStore } from '../../../engines/event-store/postgres/store';
import { PostgresDatabase } from '../../../engines/postgres/pool';
import { createLocalWakeups } from '../../../engines/wakeups/local';
import { sharedServer, type SharedServer } from '../../support/shared-server';
import { eventually } from '../../support/vendor-cloud';

/*
 * Attacks of members, holders of keys and thieves of tokens on the rights of others, as requests: each is refused or
 * without effect, and the ten thousandth call of one kind costs what the first did.
 */

let server: SharedServer;
let db: PostgresDatabase;
beforeAll(async () => {
  server = await sharedServer();
  db = new PostgresDatabase({ url: server.database_url, name: 'attacks', size: 2 });
});
afterAll(() => db?.close());

describe('the ten thousandth call', () => {
  const CALLS = 25;
  /** The process that serves: a child of the one that started it for the tests. */
  const serving = () => {
    const children = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').trim().split(' ');
    const pid = children.find((one) => readFileSync(`/proc/${one}/cmdline`, 'utf8').includes('main.js'));
    if (pid === undefined) throw new Error(`process ${server.pid} has started no server`);
    return pid;
  };
  /** Processor seconds of a process so far. */
  const cpuOf = (pid: string) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  };
  /** Processor seconds of some calls one after the other, the less of two times. */
  async function cost(call: (n: number) => Promise<unknown>): Promise<number> {
    const pid = serving();
    let least = Infinity;
    for (let round = 0; round < 2; round += 1) {
      const before = cpuOf(pid);
      for (let n = 0; n < CALLS; n += 1) await call(n);
      least = Math.min(least, cpuOf(pid) - before);
    }
    return least;
  }
  /** As if the calls had been made: ids derive from a seed, as those of calls with an Idempotency-Key do. */
  async function append(stream: string, type: string, data: (n: number) => object): Promise<void> {
    const wakeups = createLocalWakeups();
    const store = await createPostgresEventStore({ pool: db.pool, wakeups, poll_ms: 200 });
    const metadata = { account_id: 'global', correlation_id: 'made', causation_id: 'made' };
    for (let at = 0; at < 10_000; at += 1_000) {
      const events = Array.from({ length: 1_000 }, (_, n) => ({
        id: v5(`${stream} ${at + n}`, v5.URL),
        type,
        data: data(at + n) as never,
      }));
      await store.append([{ stream, expected: 'any', events }], metadata);
    }
    await store.close();
    await wakeups.close();
  }

  test.each([
    ['the name', profileStream, 'profile:changed', (n: number) => ({ display_name: `N ${n}` })],
    ['a switch', userPreferenceStream, 'user_preference:set', (n: number) => ({ streamer_mode: n % 2 === 0 })],
  ] as const)('of one user that changes %s costs what the first did', async (_what, streamOf, type, change) => {
    const { door, user_id } = await server.account();
    const call = async (n: number) => {
      const headers = { 'idempotency-key': v7() };
      expect((await door.rest('PATCH', '/v1/users/me', { body: change(n), headers })).status).toBe(200);
    };
    const first = await cost(call);
    const at = new Date().toISOString();
    await append(streamOf(user_id), type, (n) =>
      type === 'profile:changed'
        ? { user_id, changed: ['display_name'], display_name: null, email: null, changed_at: at }
        : { user_id, streamer_mode: n % 2 === 0, extension_dev_mode: false, set_at: at },
    );
    // The first one after that reads the stream once; the audit log must not be at work while the others are measured.
    await call(0);
    const logged = `select 1 from audit_log where chain = $1 offset 10000 limit 1`;
    await eventually(async () => (await db.query(logged, [`user:${user_id}`]))[0], 'the audit log');
    const later = await cost(call);
    // Reading ten thousand events for each call makes it five to twenty times as much.
    expect(later / Math.max(first, 0.05)).toBeLessThan(2.5);
  });
});
