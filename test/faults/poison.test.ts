import { TOPICS } from '../../domain/common/records';
import type { Broker } from '../../engines/broker/port';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { type Cluster, startCluster } from './support/cluster';
import { dose, SEED, seeded, sleep } from './support/dose';
import { checkInvariant } from './support/invariants';
import { Lumio } from './support/lumio';
import { Traffic } from './support/traffic';

/** Row 10: the topic holds what no program can read, among everything else. */
describe('poison in the topic', () => {
  let cluster: Cluster;
  let lumio: Lumio;
  let db: PostgresDatabase;
  let broker: Broker;

  beforeAll(async () => {
    cluster = await startCluster();
    const url = await cluster.createDatabase();
    lumio = await Lumio.start({ database_url: url });
    db = new PostgresDatabase({ url, name: 'test', size: 2 });
    broker = createPostgresBroker({ pool: db.pool, wakeups: createLocalWakeups() });
  });
  afterAll(async () => {
    await broker?.close();
    await db?.close();
    await lumio?.dispose();
    await cluster?.dispose();
  });

  /** No wire format, a schema that nobody has, a schema of ours over bytes that are none of it, nothing at all. */
  const kindsOf = (random: () => number) => {
    const bytes = (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
    return [
      () => bytes(1 + Math.floor(random() * 200)).fill(7, 0, 1),
      () => Buffer.concat([Buffer.from([0, 127, 1, 2, 3]), bytes(40)]),
      () => Buffer.concat([Buffer.from([0, 0, 0, 0, 1]), Buffer.alloc(30, 0xff)]),
      () => Buffer.alloc(0),
    ];
  };

  test(`row 10: ${dose(40, 4000)} records that cannot be read: each is parked whole with its reason, everything else is applied in order`, async () => {
    const traffic = new Traffic(lumio, { seed: SEED, name: 'beside' }).start();
    const random = seeded(SEED);
    const kinds = kindsOf(random);
    const sent: string[] = [];
    for (let n = 0; n < dose(40, 4000); n += 1) {
      const value = kinds[n % kinds.length]!();
      sent.push(value.toString('hex'));
      await broker.publish(TOPICS.platform_events, [{ key: lumio.credentials.account_id, value }]);
      await sleep(random() * 40);
    }
    const parked = [{ message: /^records parked as dead letters$/, reason: /^undecodable$/ }];
    await checkInvariant(lumio, await traffic.stop(), { parked: sent.length, excused: parked });
    const letters = await lumio.query(
      `select encode(record, 'hex') as record, reason, error from dead_letters where status = 'parked' order by position::bigint`,
    );
    expect(letters.map(({ record }) => record)).toEqual(sent);
    for (const { reason, error } of letters)
      expect([reason, error]).toEqual(['undecodable', expect.stringMatching(/./)]);
  });
});
