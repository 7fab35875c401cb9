import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Engine, engineFolder, freePort, program, startEngine } from './process';

export interface KafkaOptions {
  port?: number;
  data_dir?: string;
  /** Port that clients are told to use, when a fault proxy stands before the broker. */
  advertised_port?: number;
  /** Lines of server.properties beyond the defaults. */
  settings?: Readonly<Record<string, string>>;
  /** The clients' listener's protocol. Default PLAINTEXT. With another one the brokers talk to each other beside it. */
  protocol?: 'PLAINTEXT' | 'SASL_PLAINTEXT' | 'SSL' | 'SASL_SSL';
  /** Logins by SCRAM, as the storage tool takes them: `SCRAM-SHA-512=[name=…,password=…]`. */
  scram?: readonly string[];
}

export interface Kafka extends Engine {
  port: number;
  data_dir: string;
}

/** Nodes 1 to n, each broker and controller; any one of three may be gone. */
export interface KafkaCluster {
  /** Names all nodes. */
  readonly url: string;
  readonly nodes: readonly Kafka[];
  /** SIGKILL to all of them. */
  kill(): Promise<void>;
}

interface Place {
  id: number;
  port: number;
  controller: number;
  internal: number;
  heap_mb: number;
}

/** Apache Kafka on loopback (KRaft, broker and controller in one): one node, or a cluster of `nodes`. */
export async function startKafka(options: KafkaOptions & { nodes: number }): Promise<KafkaCluster>;
export async function startKafka(options?: KafkaOptions): Promise<Kafka>;
export async function startKafka(options: KafkaOptions & { nodes?: number } = {}): Promise<Kafka | KafkaCluster> {
  const places: Place[] = [];
  for (let id = 1; id <= (options.nodes ?? 1); id += 1) {
    const port = (places.length === 0 ? options.port : undefined) ?? (await freePort());
    const heap_mb = options.nodes === undefined ? 512 : 384;
    places.push({ id, port, controller: await freePort(), internal: await freePort(), heap_mb });
  }
  const data_dir = options.data_dir ?? engineFolder('kafka');
  const id_bytes = crypto.getRandomValues(new Uint8Array(16));
  // Its text must not begin with a dash: the storage tool would take it for an option.
  id_bytes[0]! &= 0x7f;
  const cluster_id = Buffer.from(id_bytes).toString('base64url');
  if (options.nodes === undefined) return startNode(places[0]!, places, cluster_id, data_dir, options);
  // Together: none of them listens before most of them are there.
  const starting = places.map((place) =>
    startNode(place, places, cluster_id, join(data_dir, String(place.id)), options),
  );
  const outcomes = await Promise.allSettled(starting);
  const nodes = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const kill = async () => void (await Promise.all(nodes.map((node) => node.kill())));
  if (nodes.length < places.length) {
    await kill();
    throw outcomes.find((outcome) => outcome.status === 'rejected')!.reason;
  }
  return { url: `kafka://${places.map(({ port }) => `127.0.0.1:${port}`).join(',')}`, nodes, kill };
}

async function startNode(
  { id, port, controller, internal, heap_mb }: Place,
  all: readonly Place[],
  cluster_id: string,
  data_dir: string,
  options: KafkaOptions,
): Promise<Kafka> {
  mkdirSync(data_dir, { recursive: true });
  const classes = `${program('kafka', 'libs')}/*`;
  const protocol = options.protocol ?? 'PLAINTEXT';
  const advertised = `127.0.0.1:${options.advertised_port ?? port}`;
  const apart = protocol !== 'PLAINTEXT';
  const beside = apart ? `,INTERNAL://127.0.0.1:${internal}` : '';
  const copies = String(Math.min(3, all.length));
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': String(id),
    'controller.quorum.voters': all.map((one) => `${one.id}@127.0.0.1:${one.controller}`).join(','),
    listeners: `CLIENTS://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller}${beside}`,
    'advertised.listeners': `CLIENTS://${advertised}${beside}`,
    'listener.security.protocol.map': `CLIENTS:${protocol},CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT`,
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': apart ? 'INTERNAL' : 'CLIENTS',
    'log.dirs': join(data_dir, 'log'),
    'auto.create.topics.enable': 'false',
    'offsets.topic.replication.factor': copies,
    'offsets.topic.num.partitions': '4',
    'transaction.state.log.replication.factor': copies,
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
  const format = ['kafka.tools.StorageTool', 'format', '-t', cluster_id, '-c', file];
  for (const login of options.scram ?? []) format.push('--add-scram', login);
  await promisify(execFile)('java', ['-cp', classes, ...format]);
  const engine = await startEngine({
    url: `kafka://${advertised}`,
    port,
    command: 'java',
    args: [`-Xmx${heap_mb}m`, '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-cp', classes, 'kafka.Kafka', file],
    log: join(data_dir, 'output.log'),
    start_ms: 90_000,
  });
  const node = engine as Kafka;
  return Object.defineProperties(node, { port: { value: port }, data_dir: { value: data_dir } });
}
