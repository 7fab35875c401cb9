import { parseArgs } from 'node:util';
import { type Kafka, startKafka } from '../engines/support/kafka';
import { seeded, sleep, until } from './support/dose';
import { kafkaEnds } from './support/ends';
import { DATABASE_KILLED } from './support/excuses';
import { checkInvariant } from './support/invariants';
import { Lumio } from './support/lumio';
import { residentMiB } from './support/signals';
import { Traffic } from './support/traffic';

/**
 * npm run soak: kills the real server and what it runs on at seeded moments under a seeded load, and after each round
 * compares what it keeps with what it promised (see support/invariants.ts). The seed is printed first and at a failure:
 * --seed S makes the same decisions again. With --kafka the records lie in a real Kafka, which is killed too; without,
 * all engines are the embedded ones.
 */
interface Fault {
  name: string;
  /** Chance against the others. */
  weight: number;
  run(on: System, random: () => number): Promise<void>;
}

interface System {
  lumio: Lumio;
  kafka?: Kafka;
}

const FAULTS: readonly Fault[] = [
  { name: 'nothing', weight: 1, run: async () => undefined },
  {
    name: 'kill',
    weight: 4,
    async run({ lumio }) {
      await lumio.kill();
      await lumio.start();
    },
  },
  {
    name: 'kill with the database',
    weight: 3,
    async run({ lumio }) {
      lumio.killDatabase();
      await lumio.kill();
      await lumio.start();
    },
  },
  {
    name: 'kill the database alone',
    weight: 2,
    async run({ lumio }) {
      const lives = lumio.lives;
      lumio.killDatabase();
      // Lumio ends by itself then, and its supervisor starts it.
      await until(() => lumio.lives > lives, 'the next life', 60_000);
      await lumio.start();
    },
  },
  {
    name: 'stop and start',
    weight: 2,
    async run({ lumio }) {
      const code = await lumio.stop();
      if (code !== 0) throw new Error(`SIGTERM ended with code ${code}`);
      await lumio.start();
    },
  },
  {
    name: 'freeze',
    weight: 1,
    async run({ lumio }, random) {
      lumio.signal('SIGSTOP');
      await sleep(random() * 3000);
      lumio.signal('SIGCONT');
    },
  },
  {
    name: 'rebuild',
    weight: 2,
    async run({ lumio }) {
      const { code, stderr } = await lumio.command('rebuild', 'event-log', '--quiet');
      if (code !== 0 && !/running/.test(stderr)) throw new Error(`rebuild ended with ${code}: ${stderr}`);
    },
  },
  {
    name: 'rebuild, killed',
    weight: 2,
    async run({ lumio }, random) {
      const child = lumio.spawn('rebuild', 'event-log', '--quiet', '--batch', '50');
      const ended = new Promise((done) => child.once('exit', done));
      await sleep(200 + random() * 1500);
      child.kill('SIGKILL');
      await ended;
    },
  },
];

const KAFKA_FAULTS: readonly Fault[] = [
  {
    name: 'kill the broker',
    weight: 4,
    async run({ kafka }, random) {
      await kafka!.kill();
      await sleep(random() * 2000);
      await kafka!.restart();
    },
  },
  {
    name: 'kill the broker and Lumio',
    weight: 2,
    async run({ kafka, lumio }) {
      await Promise.all([kafka!.kill(), lumio.kill()]);
      // The supervisor starts Lumio meanwhile; it waits for the broker.
      await kafka!.restart();
      await lumio.start();
    },
  },
  {
    name: 'stop and start the broker',
    weight: 1,
    async run({ kafka }) {
      await kafka!.stop();
      await kafka!.restart();
    },
  },
  {
    name: 'freeze the broker',
    weight: 2,
    async run({ kafka }, random) {
      process.kill(kafka!.pid, 'SIGSTOP');
      await sleep(random() * 6000);
      process.kill(kafka!.pid, 'SIGCONT');
    },
  },
];

function pick(faults: readonly Fault[], random: () => number): Fault {
  let at = random() * faults.reduce((sum, { weight }) => sum + weight, 0);
  return faults.find(({ weight }) => (at -= weight) < 0) ?? faults[0]!;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string' },
      kafka: { type: 'boolean', default: false },
    },
  });
  const seconds = Number(values.seconds);
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  if (!(seconds > 0) || !Number.isSafeInteger(seed))
    throw new Error('usage: npm run soak -- [--kafka] --seconds N [--seed S]');
  const on_kafka = values.kafka ? ' --kafka' : '';
  const replay = `npm run soak --${on_kafka} --seconds ${seconds} --seed ${seed}`;
  console.log(`soak: ${seconds} s, seed ${seed}${on_kafka}`);

  const random = seeded(seed);
  const kafka = values.kafka ? await startKafka() : undefined;
  const faults = kafka ? [...FAULTS, ...KAFKA_FAULTS] : FAULTS;
  const lumio = await Lumio.start({
    supervise: true,
    ...(kafka && { env: { LUMIO_BROKER__URL: kafka.url }, ends: kafkaEnds(kafka.url) }),
  });
  const traffic = new Traffic(lumio, { seed, name: 'soak' });
  const deadline = Date.now() + seconds * 1000;
  const rss: number[] = [];
  try {
    for (let round = 1; Date.now() < deadline; round += 1) {
      const done: string[] = [];
      traffic.start();
      for (let n = 1 + Math.floor(random() * 4); n > 0; n -= 1) {
        await sleep(100 + random() * 1200);
        const fault = pick(faults, random);
        done.push(fault.name);
        await fault.run({ lumio, kafka }, random);
      }
      rss.push(residentMiB(lumio.pid));
      const sent = await traffic.stop();
      const { events, keys, settled_ms } = await checkInvariant(lumio, sent, { excused: DATABASE_KILLED });
      const left = Math.max(0, Math.round((deadline - Date.now()) / 1000));
      console.log(
        `round ${round}: ${events} events, ${keys} keys, settled in ${settled_ms} ms, ` +
          `${Math.round(rss.at(-1)!)} MiB, ${left} s left: ${done.join(', ')}`,
      );
    }
    console.log(
      `soak: nothing lost, nothing doubled, order kept, rebuilt rows equal, no error logged; ${traffic.summary()}`,
    );
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    console.error(`last lines of the server:\n${lumio.output().slice(-3000)}`);
    console.error(`soak failed; replay it: ${replay}`);
    process.exitCode = 1;
  } finally {
    await lumio.dispose();
    await kafka?.kill();
  }
}

main().then(
  () => process.exit(),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  },
);
