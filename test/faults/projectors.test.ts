import pg from 'pg';
import { slowness } from '../support/patience';
import { type Cluster, startCluster } from './support/cluster';
import { dose, SEED, seeded, sleep, until } from './support/dose';
import { ENGINE_AWAY, STALLED } from './support/excuses';
import { checkInvariant, settled } from './support/invariants';
import { Lumio } from './support/lumio';
import { hashesOf } from './support/read-models';
import { ordinary, Traffic } from './support/traffic';

/** Rows 8, 9, 20, 21: what drives read models is doubled, frozen and killed while traffic comes in. */
describe('projectors', () => {
  let cluster: Cluster;
  let url: string;
  const random = seeded(SEED);
  const secrets = { LUMIO_SECRETS__KEYS: `test:${Buffer.alloc(32, 9).toString('base64')}` };

  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.dispose());
  beforeEach(async () => {
    url = await cluster.createDatabase();
  });

  test('rows 8, 21: two nodes drive the same read models; one is frozen in its batches, thought dead, and comes back: fenced', async () => {
    const a = await Lumio.start({ database_url: url, env: secrets });
    // Every role: partitions and checkpoints are contended, and each takes over for the other.
    const b = await Lumio.start({ database_url: url, env: secrets });
    try {
      const traffic = new Traffic(a, { seed: SEED, name: 'two' }).start();
      for (let round = 0; round < dose(1, 20); round += 1) {
        await sleep(300 + random() * 500);
        b.signal('SIGSTOP');
        // Longer than the patience with a silent member, so that its partitions go to the other while it holds a batch.
        await sleep(dose(13_000, 40_000));
        b.signal('SIGCONT');
        await sleep(2000);
      }
      await until(() => traffic.acked > 500, 'traffic');
      const sent = await traffic.stop();
      const { events } = await checkInvariant(a, sent);
      expect(events).toBeGreaterThan(500);
      expect([a.ends, b.ends]).toEqual([[], []]);
    } finally {
      await b.dispose();
      await a.dispose();
    }
  });

  test('row 21: two nodes, one killed again and again: the other takes over', async () => {
    const a = await Lumio.start({ database_url: url, env: secrets });
    const b = await Lumio.start({ database_url: url, env: secrets, supervise: true });
    try {
      const traffic = new Traffic(a, { seed: SEED, name: 'kills' }).start();
      for (let round = 0; round < dose(4, 40); round += 1) {
        await sleep(300 + random() * 700);
        await b.kill();
        await b.start();
      }
      await checkInvariant(a, await traffic.stop());
      expect(a.ends).toEqual([]);
    } finally {
      await b.dispose();
      await a.dispose();
    }
  });

  test('row 9: a consumer that stands still without an error is found by its missing progress and started again', async () => {
    const lumio = await Lumio.start({ database_url: url, env: secrets });
    try {
      const traffic = new Traffic(lumio, { seed: SEED, name: 'stall', emits: 0 }).start();
      await until(() => traffic.acked > 50, 'traffic');
      for (let round = 0; round < dose(1, 8); round += 1) {
        // A lock on its table makes every batch hang: heartbeats go on, nothing is thrown, nothing moves.
        const holder = new pg.Client({ connectionString: url });
        await holder.connect();
        await holder.query('begin');
        await holder.query('lock table platform_event_logs in access exclusive mode');
        const started = Date.now();
        const said = /no progress for/g;
        const before = lumio.output().match(said)?.length ?? 0;
        await until(() => (lumio.output().match(said)?.length ?? 0) > before, 'the watchdog');
        expect(Date.now() - started).toBeLessThan(45_000 * slowness());
        await holder.query('rollback');
        await holder.end();
        const acked = traffic.acked;
        await until(() => traffic.acked > acked + 50, 'traffic between two locks');
      }
      await checkInvariant(lumio, await traffic.stop(), { excused: [...ENGINE_AWAY, STALLED] });
      expect([lumio.lives, lumio.ends]).toEqual([1, []]);
    } finally {
      await lumio.dispose();
    }
  });

  test('row 20: rebuilds under live traffic, killed twice midway: live rows go on, and the last one ends equal', async () => {
    const lumio = await Lumio.start({ database_url: url, env: secrets });
    try {
      const traffic = new Traffic(lumio, { seed: SEED, name: 'rebuild', pause_ms: 0 }).start();
      await until(() => traffic.acked > dose(2000, 50_000), 'history', dose(60_000, 900_000));
      for (let round = 0; round < 2; round += 1) {
        const child = lumio.spawn('rebuild', 'event-log', '--quiet', '--batch', '50');
        const shadow = `select 1 from pg_namespace where nspname = 'rebuild_event_log'`;
        await until(async () => (await lumio.query(shadow)).length > 0, 'the rebuild under way');
        await sleep(random() * 100);
        child.kill('SIGKILL');
        const moment = Date.now();
        await ordinary(traffic, moment);
      }
      // To its end, with traffic going on.
      let refused = '';
      await until(
        async () => {
          const { code, stderr } = await lumio.command('rebuild', 'event-log', '--quiet');
          // PostgreSQL may not have seen yet that the killed one is gone.
          refused = code === 0 || stderr.includes('is running already') ? refused : stderr;
          return code === 0 || refused !== '';
        },
        'a rebuild to its end',
        120_000,
      );
      expect(refused).toBe('');
      const sent = await traffic.stop();
      await checkInvariant(lumio, sent);
      expect(await lumio.query(`select 1 from pg_namespace where nspname like 'rebuild_%'`)).toEqual([]);
      await settled(lumio, 10_000);
      const hashes = await hashesOf(lumio);
      expect(hashes.get('platform_event_logs')).toMatch(/^\d{4,}\//);
    } finally {
      await lumio.dispose();
    }
  });
});
