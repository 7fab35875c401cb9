import { type Kafka, startKafka } from '../engines/support/kafka';
import { type Cluster, startCluster } from './support/cluster';
import { dose, SEED, seeded, sleep, until } from './support/dose';
import { kafkaEnds } from './support/ends';
import { BROKER_AWAY } from './support/excuses';
import { checkInvariant } from './support/invariants';
import { type KafkaErrors, startKafkaErrors } from './support/kafka-errors';
import { Lumio } from './support/lumio';
import { freePort } from './support/toxiproxy';
import { ordinary, Traffic } from './support/traffic';

/**
 * Rows 7, 8 and 21 over a real Kafka: it dies, it answers with errors, and members of its groups are frozen or killed.
 */
describe('the broker fails', () => {
  let kafka: Kafka;
  let errors: KafkaErrors;
  let cluster: Cluster;
  let url: string;
  let env: Record<string, string>;
  const random = seeded(SEED);

  beforeAll(async () => {
    const port = await freePort();
    kafka = await startKafka({ advertised_port: port });
    errors = await startKafkaErrors(kafka.port, random, port);
    cluster = await startCluster();
    env = { LUMIO_BROKER__URL: kafka.url, LUMIO_SECRETS__KEYS: `test:${Buffer.alloc(32, 9).toString('base64')}` };
  });
  afterAll(async () => {
    await errors?.stop();
    await cluster?.dispose();
    await kafka?.kill();
  });
  beforeEach(async () => {
    url = await cluster.createDatabase();
  });
  const start = (supervise = false) => Lumio.start({ database_url: url, env, ends: kafkaEnds(kafka.url), supervise });

  test(`row 7: the broker killed ${dose(2, 20)} times: 503 or waiting meanwhile, and everybody goes on by himself`, async () => {
    const lumio = await start();
    try {
      const traffic = new Traffic(lumio, { seed: SEED, name: 'killed' }).start();
      for (let round = 0; round < dose(2, 20); round += 1) {
        const acked = traffic.acked;
        await until(() => traffic.acked > acked + 50, 'traffic');
        await kafka.kill();
        await sleep(random() * 3000);
        await kafka.restart();
      }
      await ordinary(traffic);
      await checkInvariant(lumio, await traffic.stop(), { excused: BROKER_AWAY });
      expect([lumio.lives, lumio.ends]).toEqual([1, []]);
    } finally {
      await lumio.dispose();
    }
  });

  test('row 7: answers of every kind turned into errors of the protocol', async () => {
    const lumio = await start();
    try {
      const traffic = new Traffic(lumio, { seed: SEED, name: 'errors' }).start();
      await until(() => traffic.acked > 100, 'traffic');
      errors.inject(true);
      await sleep(dose(15_000, 300_000));
      // Begins among errors, too: its producers ask for their ids only then.
      for (let round = 0; round < dose(2, 20); round += 1) {
        await lumio.kill();
        await lumio.start();
      }
      await sleep(dose(10_000, 300_000));
      errors.inject(false);
      const told = [...errors.injected.keys()];
      const apis = new Set(told.map((what) => what.split(':')[0]));
      expect([told, told.length > dose(15, 30), apis.size >= dose(6, 9)]).toEqual([told, true, true]);
      await ordinary(traffic);
      await checkInvariant(lumio, await traffic.stop(), { excused: BROKER_AWAY });
      expect(lumio.ends).toEqual([]);
    } finally {
      errors.inject(false);
      await lumio.dispose();
    }
  });

  test('rows 8, 21: two nodes share the partitions; one is frozen with batches in hand, thought dead, and comes back: fenced', async () => {
    const a = await start();
    const b = await start();
    try {
      const traffic = new Traffic(a, { seed: SEED, name: 'frozen' }).start();
      for (let round = 0; round < dose(1, 10); round += 1) {
        await sleep(500 + random() * 1000);
        b.signal('SIGSTOP');
        // Longer than its session: its partitions go to the other one.
        await sleep(dose(12_000, 25_000));
        b.signal('SIGCONT');
        await sleep(3000);
      }
      await checkInvariant(a, await traffic.stop(), { excused: BROKER_AWAY });
      expect([a.ends, b.ends]).toEqual([[], []]);
    } finally {
      await b.dispose();
      await a.dispose();
    }
  });

  test(`row 21: two nodes, one killed ${dose(2, 20)} times: the other takes its partitions over`, async () => {
    const a = await start();
    const b = await start(true);
    try {
      const traffic = new Traffic(a, { seed: SEED, name: 'member' }).start();
      for (let round = 0; round < dose(2, 20); round += 1) {
        await sleep(500 + random() * 1500);
        await b.kill();
        await b.start();
      }
      await checkInvariant(a, await traffic.stop(), { excused: BROKER_AWAY });
      expect(a.ends).toEqual([]);
    } finally {
      await b.dispose();
      await a.dispose();
    }
  });
});
