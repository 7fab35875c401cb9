import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { slowness } from '../support/patience';
import { type Cluster, startCluster } from './support/cluster';
import { dose, SEED, seeded, sleep, until } from './support/dose';
import { checkInvariant } from './support/invariants';
import { Lumio } from './support/lumio';
import { type Link, startToxiproxy, type Toxiproxy } from './support/toxiproxy';
import { ordinary, Traffic } from './support/traffic';

/** Rows 2, 3, 5, 13: PostgreSQL outside the process, reached through a link that can be broken. */
describe('the database fails', () => {
  let cluster: Cluster;
  let proxy: Toxiproxy;
  let link: Link;
  let url: string;
  let lumio: Lumio;
  const random = seeded(SEED);

  beforeAll(async () => {
    cluster = await startCluster();
    proxy = await startToxiproxy();
  });
  afterAll(async () => {
    await proxy?.stop();
    await cluster?.dispose();
  });
  beforeEach(async () => {
    url = await cluster.createDatabase();
    link = await proxy.link(`${cluster.host}:5432`);
    lumio = await Lumio.start({ database_url: through_link(), direct_url: url });
  });
  const through_link = () => url.replace(`${cluster.host}:5432`, `127.0.0.1:${link.port}`);
  afterEach(() => lumio?.dispose());

  /** Traffic through `faults`, and everything promised holds afterwards; the process lived through it. */
  async function expectSurvived(
    name: string,
    faults: (traffic: Traffic) => Promise<void>,
    options = {},
  ): Promise<Traffic> {
    const traffic = new Traffic(lumio, { seed: SEED, name, ...options }).start();
    await sleep(500);
    await faults(traffic);
    const over = Date.now();
    await ordinary(traffic);
    const sent = await traffic.stop();
    await checkInvariant(lumio, sent, { settle_ms: Math.max(5000, 30_000 - (Date.now() - over)) });
    expect([lumio.lives, lumio.ends]).toEqual([1, []]);
    return traffic;
  }

  test(`row 2: PostgreSQL killed ${dose(2, 25)} times, restarted, its sessions ended: Lumio lives on`, async () => {
    await expectSurvived('pg', async () => {
      for (let round = 0; round < dose(2, 25); round += 1) {
        await sleep(200 + random() * 600);
        await cluster.kill();
        await sleep(random() * 1500);
        await cluster.start();
        await sleep(500);
        await cluster.terminate(url);
      }
      await cluster.stop();
      await sleep(dose(1000, 30_000));
      await cluster.start();
    });
  });

  test('row 3: commits succeed and their replies are lost: each retry ends with one effect', async () => {
    const traffic = await expectSurvived('lost', async () => {
      for (let round = 0; round < dose(6, 60); round += 1) {
        // Answers are cut off after a few bytes; what was asked is done.
        await link.add('limit_data', 'downstream', { bytes: Math.floor(random() * 3000) });
        await sleep(300);
        await link.mend();
        await sleep(200 + random() * 200);
      }
      await link.add('reset_peer', 'downstream', { timeout: 50 });
      await sleep(1000);
      await link.mend();
    });
    expect(traffic.acked).toBeGreaterThan(100);
    // Some were answered that their fate is unknown, and were sent again.
    expect(traffic.sent.statuses.get(503)).toBeGreaterThan(0);
  });

  test('row 2: half-open links: nothing closes, nothing answers; statements are given up and the pools renew themselves', async () => {
    await expectSurvived(
      'open',
      async (traffic) => {
        await link.silence();
        await sleep(dose(12_000, 600_000));
        const before = traffic.acked;
        await link.mend();
        await until(() => traffic.acked > before + 20, 'webhooks after the silence');
      },
      { timeout_ms: 30_000 },
    );
  });

  test('row 2: a database that vanishes while reads and commands wait: 503 with Retry-After in bounded time, back by itself', async () => {
    await lumio.dispose();
    url = await cluster.createDatabase();
    const env = { LUMIO_DATABASE__STATEMENT_TIMEOUT: '3s' };
    lumio = await Lumio.start({ database_url: through_link(), direct_url: url, env });
    const { base_url, credentials } = lumio;
    const headers = { authorization: `Bearer ${credentials.access_token}`, 'content-type': 'application/json' };
    const answers: { status: number; retry_after: string | null; at: number; ms: number }[] = [];
    let asking = true;
    const lane = async (method: string, path: string, body?: string) => {
      while (asking) {
        const at = Date.now();
        const response = await fetch(base_url + path, { method, headers, ...(body && { body }) });
        await response.text();
        answers.push({
          status: response.status,
          retry_after: response.headers.get('retry-after'),
          at,
          ms: Date.now() - at,
        });
        await sleep(250);
      }
    };
    const key = JSON.stringify({ label: 'x', permissions: ['events:read'], expires_at: null });
    const lanes = [
      ...Array.from({ length: 8 }, () => lane('GET', '/v1/events?limit=5')),
      lane('GET', '/v1/api-keys'),
      lane('POST', '/v1/api-keys', key),
    ];
    await until(() => answers.length > 20, 'answers before');
    const silent_from = Date.now();
    await link.silence();
    await sleep(dose(12_000, 120_000));
    await until(() => answers.filter(({ status }) => status === 503).length > 10, 'refusals');
    await link.mend();
    const mended = Date.now();
    await until(
      () => answers.filter(({ status, at }) => status < 300 && at > mended).length > 20,
      'ordinary answers after',
    );
    asking = false;
    await Promise.all(lanes);
    // A connection first (at most 4 s), then a statement (at most 4 s); an append has bounds of its own.
    const bound_ms = 15_000 * slowness();
    expect(answers.filter(({ ms }) => ms >= bound_ms)).toEqual([]);
    const allowed = ({ status, retry_after, at }: (typeof answers)[number]) =>
      [200, 201, 429].includes(status) || (status === 503 && retry_after === '5' && at >= silent_from - 1000);
    expect(answers.filter((answer) => !allowed(answer))).toEqual([]);
    expect([lumio.lives, lumio.ends]).toEqual([1, []]);
  });

  test('row 5: appends and channel messages that were rolled back leave no gap, and a session idle in its transaction holds nothing up', async () => {
    await expectSurvived('gap', async (traffic) => {
      const idle = new pg.Client({ connectionString: url });
      await idle.connect();
      await idle.query('begin');
      // An open write of its own, the way a forgotten session holds one; then a batch of ours that is undone.
      await idle.query(`insert into installation (name, value) values ('idle', 'in transaction')`);
      const before = traffic.acked;
      const append = `select * from append_domain_events('{}', '{1}', '{1}', '{1}', $1, '{-2}', '{1}', $2, '{1}', '{1}', $2, 'x:y', '{}')`;
      for (let n = 0; n < dose(5, 500); n += 1) {
        const undone = new pg.Client({ connectionString: url });
        await undone.connect();
        await undone.query('begin');
        await undone.query(`select nextval(pg_get_serial_sequence('outbox', 'id'))`);
        await undone.query(
          `select outbox_write(array['events:${lumio.credentials.account_id}'], array['x'], array['{}'])`,
        );
        await undone.query(append, ['undone', randomUUID()]);
        await undone.query('rollback');
        await undone.end();
      }
      expect(await lumio.query(`select id from domain_events where stream = 'undone'`)).toEqual([]);
      const dense = 'select count(*) = max(position) as dense from domain_events';
      expect(await lumio.query(dense)).toEqual([{ dense: true }]);
      await until(() => traffic.acked > before + 100, 'traffic beside the idle session');
      await idle.query('rollback');
      await idle.end();
    });
  });

  test('row 13: a slow database: no 2xx without the durable write, 503 with Retry-After, ordinary again', async () => {
    const traffic = await expectSurvived(
      'slow',
      async () => {
        await link.add('latency', 'downstream', { latency: 3000, jitter: 500 });
        await sleep(dose(8000, 60_000));
        await link.mend();
        await link.cut();
        await sleep(dose(12_000, 60_000));
        await link.mend();
      },
      { timeout_ms: 30_000 },
    );
    expect(traffic.sent.statuses.get(503)).toBeGreaterThan(0);
  });
});
