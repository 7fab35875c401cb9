import { connect as connectTcp, isIP } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { type Admin, Kafka, type KafkaConfig, logLevel, type SASLOptions } from 'kafkajs';
import { retry, type Try } from '../../../lib/async/retry';
import { withTimeout } from '../../../lib/async/signal';
import type { Logger } from '../../log/port';
import './fetch/kafkajs-patch';
import { type Bounds, InvalidRecord, OffsetOutOfRange } from '../port';

export interface KafkaConnection {
  /** `kafka://h1:9092,h2:9092`: any of them; the others are found through them. */
  url: string;
  /** TLS to the brokers; an object adds a certificate authority or a client certificate. */
  tls?: boolean | ConnectionOptions;
  sasl?: SASLOptions;
  /** Name of this client in the brokers' logs and quotas. Default `lumio`. */
  client_id?: string;
}

export const CONNECTION_TIMEOUT_MS = 3_000;
export const REQUEST_TIMEOUT_MS = 10_000;
/** kafkajs' own tries within one call; after them the connection is discarded and the call is made again. */
export const RETRY = { retries: 2, initialRetryTime: 50, maxRetryTime: 1_000, factor: 0.2, multiplier: 2 } as const;

/** There is no such topic; {@link KafkaClient.partitions}. */
export class NoSuchTopic extends Error {
  constructor(topic: string) {
    super(`there is no topic ${topic}`);
    this.name = 'NoSuchTopic';
  }
}

/**
 * Addresses of `kafka://h1:9092,h2:9092`; a port that is left out is 9092.
 * @throws Error with one line for anything else
 */
export function kafkaAddresses(url: string): string[] {
  const hosts = /^kafka:\/\/([^/?#@]+)\/?$/.exec(url)?.[1]?.split(',') ?? [];
  const addresses = hosts.map((host) => (/:\d+$/.test(host) ? host : `${host}:9092`));
  const valid = addresses.every((address) => /^(\[[0-9a-f:]+\]|[\w.-]+):\d{1,5}$/i.test(address));
  if (addresses.length === 0 || !valid) throw new Error('must be kafka://host:port, several hosts joined by commas');
  return addresses;
}

const PERMANENT =
  /AUTHORIZATION_FAILED|UNSUPPORTED_VERSION|TOO_LARGE|INVALID_(RECORD|TOPIC|CONFIG|PARTITIONS|REPLICATION|REQUIRED)|POLICY_VIOLATION/;

/** Codes of Node's TLS for a certificate that is not trusted, or not for this host: no later try changes that. */
const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|ERR_TLS_/;

/** TLS alerts of the brokers about a client certificate that is missing, unknown to them or not good enough. */
const OURS_REFUSED = /ALERT_(?:\w+_)?(?:CERTIFICATE|CERT|UNKNOWN_CA)/;

/** The setting of ours that the brokers refused, or TLS refused here; undefined for every other error. */
export function refusalOf(error: unknown): 'login' | 'certificate' | 'client certificate' | undefined {
  for (let at = error as KafkaFailure | undefined, depth = 0; at && depth < 6; at = at.cause, depth += 1) {
    if (at.name === 'KafkaJSSASLAuthenticationError') return 'login';
    if (OURS_REFUSED.test(at.code ?? '')) return 'client certificate';
    if (UNTRUSTED.test(at.code ?? '')) return 'certificate';
  }
  return undefined;
}

/** True when the same request may succeed later on another connection. What it did until then is unknown. */
export function isPassingAtKafka(error: unknown): boolean {
  if (error instanceof NoSuchTopic || error instanceof OffsetOutOfRange || error instanceof InvalidRecord) return false;
  if (refusalOf(error)) return false;
  for (let at = error as KafkaFailure | undefined, depth = 0; at && depth < 5; at = at.cause, depth += 1) {
    if (PERMANENT.test(at.type ?? '') || at.name === 'KafkaJSNotImplemented') return false;
    if (at.errors?.some((one) => !isPassingAtKafka(one))) return false;
  }
  return true;
}

/** kafkajs' name of a protocol error, wherever in the chain of causes it is. */
export function typeOf(error: unknown): string | undefined {
  for (let at = error as KafkaFailure | undefined, depth = 0; at && depth < 5; at = at.cause, depth += 1) {
    if (at.type) return at.type;
    const inner = at.errors?.map(typeOf).find(Boolean);
    if (inner) return inner;
  }
  return undefined;
}

interface KafkaFailure extends Error {
  type?: string;
  code?: string;
  cause?: KafkaFailure;
  errors?: KafkaFailure[];
}

/** Result of `work`. @throws Error that names `what` after `ms` without a result */
export const answered = <T>(work: Promise<T>, ms: number, what: string): Promise<T> =>
  withTimeout(work, ms, () => new Error(`${what}: no answer within ${ms} ms`));

/** Addresses and administration of the cluster; every other part of the adapter gets its connections from here. */
export class KafkaClient {
  readonly kafka: Kafka;
  readonly config: KafkaConfig & { brokers: string[]; clientId: string; ssl: ConnectionOptions | undefined };
  private admin: Promise<Admin> | undefined;
  private readonly topics = new Map<string, number>();
  private readonly closing = new AbortController();

  constructor(
    connection: KafkaConnection,
    private readonly log: Logger | undefined,
  ) {
    const { tls } = connection;
    this.config = {
      brokers: kafkaAddresses(connection.url),
      clientId: connection.client_id ?? 'lumio',
      ssl: tls === true ? {} : tls === false ? undefined : tls,
      ...(connection.sasl && { sasl: connection.sasl }),
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      authenticationTimeout: REQUEST_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      retry: RETRY,
      // No delay: Nagle's algorithm would hold a small request back behind an unacknowledged one.
      socketFactory: ({ host, port, ssl, onConnect }) => {
        const socket = ssl
          ? connectTls({ host, port, ...(isIP(host) ? {} : { servername: host }), ...ssl }, onConnect)
          : connectTcp({ host, port }, onConnect);
        // No maximum, because kafkajs adds a listener to its last socket with every try while a broker is unavailable.
        return socket.setMaxListeners(0).setNoDelay(true).setKeepAlive(true, 10_000);
      },
      logLevel: logLevel.WARN,
      // Most errors of kafkajs are tries that are repeated; the code that handles a failure logs it.
      logCreator:
        () =>
        ({ level, namespace, log: { message, error } }) => {
          if (level === logLevel.ERROR)
            this.log?.debug({ part: namespace, err: error as unknown }, `kafka: ${message}`);
        },
    };
    this.kafka = new Kafka(this.config);
  }

  /** Identity of the cluster. */
  async clusterId(timeout_ms: number): Promise<string> {
    const { clusterId } = await this.ask('describing the cluster', (admin) => admin.describeCluster(), timeout_ms);
    return clusterId;
  }

  /** Number of partitions, which determines the partition of a key; fetched once. @throws NoSuchTopic */
  async partitions(topic: string): Promise<number> {
    const known = this.topics.get(topic);
    if (known !== undefined) return known;
    const { topics } = await this.ask(`looking up ${topic}`, async (admin) => {
      try {
        return await admin.fetchTopicMetadata({ topics: [topic] });
      } catch (error) {
        const unknown = /UNKNOWN_TOPIC|INVALID_TOPIC/.test(typeOf(error) ?? '');
        throw unknown ? new NoSuchTopic(topic) : error;
      }
    });
    const count = topics[0]!.partitions.length;
    this.topics.set(topic, count);
    return count;
  }

  /** @throws NoSuchTopic */
  async bounds(topic: string): Promise<Map<number, Bounds>> {
    await this.partitions(topic);
    const offsets = await this.ask(`offsets of ${topic}`, (admin) => admin.fetchTopicOffsets(topic));
    const bounds = offsets.map(
      ({ partition, low, high }) => [partition, { earliest: Number(low), next: Number(high) }] as const,
    );
    return new Map(bounds.sort(([a], [b]) => a - b));
  }

  /** Sends an administrative request; retries on a new connection until `timeout_ms` has passed. */
  async ask<T>(what: string, request: (admin: Admin) => Promise<T>, timeout_ms = 15_000): Promise<T> {
    const attempt = async ({ left_ms }: Try) => {
      const admin = (this.admin ??= this.open());
      try {
        const answer = admin.then((connected) => request(connected));
        return await answered(answer, Math.max(1_000, Math.min(REQUEST_TIMEOUT_MS, left_ms)), `kafka, ${what}`);
      } catch (error) {
        if (isPassingAtKafka(error)) this.discard(admin);
        throw error;
      }
    };
    const { signal } = this.closing;
    return retry(attempt, { first_ms: 50, most_ms: 1_000, within_ms: timeout_ms, signal, passing: isPassingAtKafka });
  }

  async close(): Promise<void> {
    this.closing.abort(new Error('the connection to kafka is closed'));
    const { admin } = this;
    this.admin = undefined;
    await admin?.then((connected) => connected.disconnect()).catch(() => undefined);
  }

  private async open(): Promise<Admin> {
    const admin = this.kafka.admin({ retry: RETRY });
    await admin.connect();
    return admin;
  }

  private discard(admin: Promise<Admin>): void {
    if (this.admin === admin) this.admin = undefined;
    admin
      .then((connected) => connected.disconnect())
      .catch((error: Error) => this.log?.debug({ err: error }, 'kafka: an administrative connection ended badly'));
  }
}
