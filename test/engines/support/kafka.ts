import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Engine, freePort, program, startEngine } from './process';

export interface KafkaOptions {
  port?: number;
  data_dir?: string;
  /** Port that clients are told to use, when a fault proxy stands before the broker. */
  advertised_port?: number;
  /** Lines of server.properties beyond the defaults. */
  settings?: Readonly<Record<string, string>>;
  /** The listener's protocol. Default PLAINTEXT. */
  protocol?: 'PLAINTEXT' | 'SASL_PLAINTEXT' | 'SSL' | 'SASL_SSL';
}

export interface Kafka extends Engine {
  port: number;
  data_dir: string;
}

/** One Apache Kafka node (KRaft, broker and controller in one) on loopback. */
export async function startKafka(options: KafkaOptions = {}): Promise<Kafka> {
  const port = options.port ?? (await freePort());
  const controller = await freePort();
  const data_dir = options.data_dir ?? mkdtempSync(join(tmpdir(), 'lumio-kafka-'));
  mkdirSync(data_dir, { recursive: true });
  const classes = `${program('kafka', 'libs')}/*`;
  const protocol = options.protocol ?? 'PLAINTEXT';
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': '1',
    'controller.quorum.voters': `1@127.0.0.1:${controller}`,
    listeners: `CLIENTS://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller}`,
    'advertised.listeners': `CLIENTS://127.0.0.1:${options.advertised_port ?? port}`,
    'listener.security.protocol.map': `CLIENTS:${protocol},CONTROLLER:PLAINTEXT`,
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'CLIENTS',
    'log.dirs': join(data_dir, 'log'),
    'auto.create.topics.enable': 'false',
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '4',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'group.initial.rebalance.delay.ms': '0',
    // After kill -9 the old session must lapse before the node is let in again: 9 s by default.
    'broker.session.timeout.ms': '3000',
    'broker.heartbeat.interval.ms': '500',
    ...options.settings,
  };
  const file = join(data_dir, 'server.properties');
  writeFileSync(
    file,
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  const java = (...args: string[]) =>
    execFileSync('java', ['-cp', classes, ...args], { encoding: 'utf8', stdio: 'pipe' });
  const id = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64url');
  java('kafka.tools.StorageTool', 'format', '-t', id, '-c', file);
  const engine = await startEngine({
    url: `kafka://127.0.0.1:${options.advertised_port ?? port}`,
    port,
    command: 'java',
    args: ['-Xmx512m', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-cp', classes, 'kafka.Kafka', file],
    log: join(data_dir, 'output.log'),
    start_ms: 60_000,
  });
  const node = engine as Kafka;
  return Object.defineProperties(node, { port: { value: port }, data_dir: { value: data_dir } });
}
