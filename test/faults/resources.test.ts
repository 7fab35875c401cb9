import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { startCluster } from './support/cluster';
import { smallDisk } from './support/disk';
import { dose, SEED, sleep, until } from './support/dose';
import { DISK_FULL, NO_DESCRIPTORS } from './support/excuses';
import { checkInvariant } from './support/invariants';
import { Lumio } from './support/lumio';
import { Traffic } from './support/traffic';

/** Row 23 (and 13, full): the machine runs out of something; the server refuses cleanly and recovers unaided. */
describe('something runs out', () => {
  test('rows 13, 23: the database disk is full: refused with 503, and everything acknowledged is there when there is room again', async () => {
    const disk = smallDisk(320);
    const settings = ['max_wal_size=96MB', 'min_wal_size=32MB', 'shared_buffers=32MB'];
    const cluster = await startCluster({ folder: join(disk.folder, 'data'), settings });
    const url = await cluster.createDatabase();
    const lumio = await Lumio.start({ database_url: url });
    try {
      const traffic = new Traffic(lumio, { seed: SEED, name: 'disk', pause_ms: 0, keys: 0 }).start();
      for (let round = 0; round < dose(1, 4); round += 1) {
        const [acked, refused] = [traffic.acked, traffic.sent.statuses.get(503) ?? 0];
        await until(() => traffic.acked > acked + 100, 'traffic');
        disk.fill(0);
        await until(() => (traffic.sent.statuses.get(503) ?? 0) > refused, 'a webhook refused for want of room');
        await sleep(2000);
        disk.relieve();
        // PostgreSQL ends when it cannot write its log; its supervisor starts it again.
        await cluster.start();
      }
      const sent = await traffic.stop();
      await checkInvariant(lumio, sent, { excused: DISK_FULL });
      expect([lumio.lives, lumio.ends]).toEqual([1, []]);
    } finally {
      await lumio.dispose();
      await cluster.dispose();
      disk.dispose();
    }
  });

  test('row 23: no database connection is left: refused with 503, nothing lost', async () => {
    const cluster = await startCluster({ settings: ['max_connections=48', 'superuser_reserved_connections=3'] });
    const url = await cluster.createDatabase();
    const lumio = await Lumio.start({ database_url: url });
    const greedy: pg.Client[] = [];
    try {
      const traffic = new Traffic(lumio, { seed: SEED, name: 'conn' }).start();
      for (let round = 0; round < dose(1, 10); round += 1) {
        await sleep(500);
        await starve();
        const acked = traffic.acked;
        await until(() => traffic.acked > acked + 50, 'traffic again');
      }
      const sent = await traffic.stop();
      expect(sent.statuses.get(503)).toBeGreaterThan(0);
      await checkInvariant(lumio, sent);
      expect([lumio.lives, lumio.ends]).toEqual([1, []]);
    } finally {
      for (const client of greedy) await client.end();
      await lumio.dispose();
      await cluster.dispose();
    }

    /** Ends the server's own sessions and takes their places, for some seconds. */
    async function starve(): Promise<void> {
      for (let n = 0; n < 60 && (await take()); n += 1);
      expect(greedy.length).toBeGreaterThan(5);
      const [first] = greedy;
      await first!.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'lumio %' and datname = current_database()`,
      );
      for (let n = 0; n < 40; n += 1) await take();
      await sleep(4000);
      for (const client of greedy.splice(0)) await client.end();
    }

    /** One connection more; false when there was none. */
    async function take(): Promise<boolean> {
      const client = new pg.Client({ connectionString: url });
      client.on('error', () => undefined); // ended with the others
      try {
        await client.connect();
      } catch {
        return false;
      }
      greedy.push(client);
      return true;
    }
  });

  test('row 23: no file descriptor is left: further connections get no answer, the process lives, and serves again', async () => {
    const lumio = await Lumio.start();
    const sockets: Socket[] = [];
    try {
      const traffic = new Traffic(lumio, { seed: SEED, name: 'fds' }).start();
      await sleep(500);
      const open = readdirSync(`/proc/${lumio.pid}/fd`).length;
      const [, before] = /Max open files +(\d+)/.exec(readFileSync(`/proc/${lumio.pid}/limits`, 'utf8'))!;
      const limit = (soft: string) =>
        expect(spawnSync('prlimit', [`--pid=${lumio.pid}`, `--nofile=${soft}:`], { encoding: 'utf8' })).toMatchObject({
          status: 0,
        });
      const { port, hostname } = new URL(lumio.base_url);
      for (let round = 0; round < dose(1, 20); round += 1) {
        limit(String(open + 20));
        for (let n = 0; n < 200; n += 1) {
          const socket = connect(Number(port), hostname);
          socket.on('error', () => undefined); // refused is as good as waiting
          sockets.push(socket);
        }
        const held = () => readdirSync(`/proc/${lumio.pid}/fd`).length;
        await until(() => held() >= open + 15, 'the descriptors to be used up');
        const refused = await fetch(`${lumio.base_url}/v1/health`, { signal: AbortSignal.timeout(2000) }).then(
          ({ status }) => status,
          () => 'no answer',
        );
        expect(refused).toBe('no answer');
        await sleep(3000);
        for (const socket of sockets.splice(0)) socket.destroy();
        limit(before!);
        const acked = traffic.acked;
        await until(() => traffic.acked > acked + 50, 'traffic again');
      }
      const sent = await traffic.stop();
      await checkInvariant(lumio, sent, { excused: NO_DESCRIPTORS });
      expect([lumio.lives, lumio.ends]).toEqual([1, []]);
    } finally {
      for (const socket of sockets) socket.destroy();
      await lumio.dispose();
    }
  });
});
