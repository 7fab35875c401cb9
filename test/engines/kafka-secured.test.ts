import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { SASLOptions } from 'kafkajs';
import { createKafkaBroker } from '../../engines/broker/kafka/broker';
import type { Broker } from '../../engines/broker/port';
import { until } from '../contracts/broker';
import { type TestDatabase, testDatabase } from '../support/database';
import { runLumio, startServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { privateAuthority } from './support/certificates';
import { type Kafka, startKafka } from './support/kafka';
import { engineFolder } from './support/process';

const REFUSED = /^LUMIO_BROKER__TLS_CERT, LUMIO_BROKER__TLS_KEY: kafka at .* cannot be used: /;

/** A broker with a login, behind a certificate of a private authority. */
describe('kafka with TLS and SASL', () => {
  const authority = privateAuthority();
  const password = randomUUID();
  let kafka: Kafka;
  let database: TestDatabase;

  beforeAll(async () => {
    const modules = 'org.apache.kafka.common.security';
    kafka = await startKafka({
      protocol: 'SASL_SSL',
      scram: ['256', '512'].map((bits) => `SCRAM-SHA-${bits}=[name=lumio,password=${password}]`),
      settings: {
        'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
        'listener.name.clients.plain.sasl.jaas.config': `${modules}.plain.PlainLoginModule required user_lumio="${password}";`,
        'listener.name.clients.scram-sha-256.sasl.jaas.config': `${modules}.scram.ScramLoginModule required;`,
        'listener.name.clients.scram-sha-512.sasl.jaas.config': `${modules}.scram.ScramLoginModule required;`,
        'listener.name.clients.ssl.keystore.type': 'PEM',
        'listener.name.clients.ssl.keystore.location': authority.server_file,
      },
    });
    database = await testDatabase(2);
  });
  afterAll(async () => {
    await kafka?.kill();
    await database?.drop();
  });

  test.each(['plain', 'scram-sha-256', 'scram-sha-512'] as const)(
    'publishes, reads and consumes: %s',
    async (mechanism) => {
      const sasl = { mechanism, username: 'lumio', password } as SASLOptions;
      const broker = await createKafkaBroker({ url: kafka.url, tls: { ca: authority.ca }, sasl });
      await expectWorking(broker, `secured-${mechanism}`);
    },
  );

  const settings = () => ({
    LUMIO_BROKER__URL: kafka.url,
    LUMIO_BROKER__TLS: 'true',
    LUMIO_BROKER__TLS_CA: authority.ca_file,
    LUMIO_BROKER__SASL_MECHANISM: 'scram-sha-512',
    LUMIO_BROKER__SASL_USERNAME: 'lumio',
    LUMIO_BROKER__SASL_PASSWORD: password,
  });

  test.each([
    ['scram-sha-512', 'a path', () => authority.ca_file],
    ['scram-sha-256', 'PEM', () => authority.ca],
  ])('the whole server by its settings, with %s and the authority as %s', async (mechanism, _, tls_ca) => {
    await expectServing({ ...settings(), LUMIO_BROKER__SASL_MECHANISM: mechanism, LUMIO_BROKER__TLS_CA: tls_ca() });
  });

  test.each([
    [
      'a wrong password (plain)',
      { SASL_MECHANISM: 'plain', SASL_PASSWORD: 'not-it' },
      /^LUMIO_BROKER__SASL_USERNAME, LUMIO_BROKER__SASL_PASSWORD: kafka at .* cannot be used: .*[Aa]uthentication/,
    ],
    [
      'a wrong password (scram)',
      { SASL_PASSWORD: 'not-it' },
      /^LUMIO_BROKER__SASL_USERNAME, LUMIO_BROKER__SASL_PASSWORD: kafka at .* cannot be used: .*[Aa]uthentication/,
    ],
    ['an authority that nobody named', { TLS_CA: undefined }, /^LUMIO_BROKER__TLS_CA: kafka at .*certificate/],
    ['an authority that is not there', { TLS_CA: '/nowhere/ca.pem' }, /^LUMIO_BROKER__TLS_CA .*PEM file \(ENOENT/],
    ['a file that holds none', { TLS_CA: '/etc/hostname' }, /^LUMIO_BROKER__TLS_CA .*holds no PEM certificate/],
    ['an authority without TLS', { TLS: 'false' }, /^LUMIO_BROKER__TLS_CA .*LUMIO_BROKER__TLS=true/],
  ])(
    '%s ends the start with one line that names the key',
    async (_, wrong: Record<string, string | undefined>, line) => {
      await refuses(database, { ...settings(), ...prefixed(wrong) }, line);
    },
  );
});

/** A broker that asks every client for its certificate. */
describe('kafka with client certificates', () => {
  const authority = privateAuthority();
  const stranger = privateAuthority();
  const own = authority.client('lumio');
  const foreign = stranger.client('lumio');
  let kafka: Kafka;
  let database: TestDatabase;

  beforeAll(async () => {
    kafka = await startKafka({
      protocol: 'SSL',
      settings: {
        'listener.name.clients.ssl.keystore.type': 'PEM',
        'listener.name.clients.ssl.keystore.location': authority.server_file,
        'listener.name.clients.ssl.truststore.type': 'PEM',
        'listener.name.clients.ssl.truststore.location': authority.ca_file,
        'listener.name.clients.ssl.client.auth': 'required',
        // Whoever has no certificate of the authority is nobody; whoever has one is its name.
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        'super.users': 'User:ANONYMOUS;User:CN=lumio',
      },
    });
    database = await testDatabase(2);
  });
  afterAll(async () => {
    await kafka?.kill();
    await database?.drop();
  });

  const pem = (file: string) => readFileSync(file, 'utf8');
  const settings = () => ({
    LUMIO_BROKER__URL: kafka.url,
    LUMIO_BROKER__TLS: 'true',
    LUMIO_BROKER__TLS_CA: authority.ca_file,
    LUMIO_BROKER__TLS_CERT: own.cert_file,
    LUMIO_BROKER__TLS_KEY: own.key_file,
  });

  test('publishes, reads and consumes', async () => {
    const tls = { ca: authority.ca, cert: pem(own.cert_file), key: pem(own.key_file) };
    await expectWorking(await createKafkaBroker({ url: kafka.url, tls }), 'certified');
  });

  test.each([
    ['paths', (file: string) => file],
    ['PEM', pem],
  ])('the whole server by its settings, certificate and key as %s', async (_, as) => {
    const { LUMIO_BROKER__TLS_CERT: cert, LUMIO_BROKER__TLS_KEY: key } = settings();
    await expectServing({ ...settings(), LUMIO_BROKER__TLS_CERT: as(cert), LUMIO_BROKER__TLS_KEY: as(key) });
  });

  test.each([
    ['no certificate', { TLS_CERT: undefined, TLS_KEY: undefined }, REFUSED],
    ['a certificate of another authority', { TLS_CERT: foreign.cert_file, TLS_KEY: foreign.key_file }, REFUSED],
    ['a certificate without its key', { TLS_KEY: undefined }, /^LUMIO_BROKER__TLS_CERT and .*must be set together/],
    ['the key of another certificate', { TLS_KEY: foreign.key_file }, /^LUMIO_BROKER__TLS_KEY .*is not the key of/],
    ['a key that holds none', { TLS_KEY: own.cert_file }, /^LUMIO_BROKER__TLS_KEY .*holds no PEM private key/],
    ['a certificate without TLS', { TLS: 'false', TLS_CA: undefined }, /^LUMIO_BROKER__TLS_CERT .*LUMIO_BROKER__TLS=/],
  ])(
    '%s ends the start with one line that names the key',
    async (_, wrong: Record<string, string | undefined>, line) => {
      await refuses(database, { ...settings(), ...prefixed(wrong) }, line);
    },
  );
});

const prefixed = (changes: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(changes).map(([name, value]) => [`LUMIO_BROKER__${name}`, value]));

/** The adapter over this connection, all of its ways; closes it. */
async function expectWorking(broker: Broker, topic: string): Promise<void> {
  try {
    await broker.ensureTopics([topic], 2);
    const values = Array.from({ length: 20 }, (_, n) => `${n}`).sort();
    await broker.publish(
      topic,
      values.map((value) => ({ key: `k${value}`, value: Buffer.from(value) })),
    );
    const seen: string[] = [];
    const tail = broker.consume({
      topic,
      group: topic,
      start: async (partitions) => new Map(partitions.map((partition) => [partition, 0])),
      onBatch: async ({ records }) => void seen.push(...records.map(({ value }) => value.toString())),
    });
    await until(() => seen.length >= values.length, 60_000);
    await tail.stop();
    expect(seen.sort()).toEqual(values);
    const read: string[] = [];
    for (const [partition] of await broker.bounds(topic))
      for await (const page of broker.read(topic, partition, 0))
        read.push(...page.map(({ value }) => value.toString()));
    expect(read.sort()).toEqual(values);
  } finally {
    await broker.close();
  }
}

/** The whole server: a webhook of its vendor is in the API. */
async function expectServing(env: Record<string, string>): Promise<void> {
  const server = await startServer({ env });
  try {
    const vendors = new VendorCloud(server.base_url, server.credentials);
    expect((await vendors.kickFollow(4711)).status).toBe(200);
    const api = new ApiClient(server.base_url, server.credentials.access_token);
    const stored = () => api.allEvents('&types=kick:follower&user_id=4711');
    await eventually(async () => ((await stored()).length === 1 ? true : undefined), 'the event');
  } finally {
    await server.dispose();
  }
}

/**
 * The start ends with this one line, and at once: what no later try can change is not tried for the minute that a
 * starting broker gets.
 */
async function refuses(database: TestDatabase, given: Record<string, string | undefined>, line: RegExp): Promise<void> {
  const env = Object.entries({
    ...given,
    LUMIO_DATA_DIR: engineFolder('secured'),
    LUMIO_PORT: '0',
    LUMIO_METRICS__PORT: '0',
    LUMIO_LOG_LEVEL: 'error',
    LUMIO_DATABASE__URL: database.url,
    LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
  }).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const started_at = performance.now();
  const { code, stderr } = await runLumio(['start'], Object.fromEntries(env));
  const lines = stderr.trim().split('\n');
  expect(lines).toHaveLength(1);
  expect(lines[0]!.replace(/^lumio: /, '')).toMatch(line);
  expect(lines[0]).not.toContain('not-it');
  expect(code).toBe(1);
  expect(performance.now() - started_at).toBeLessThan(55_000);
}
