import { randomBytes } from 'node:crypto';
import { Type, type Schema } from 'avsc';
import { Kafka as KafkaJs, logLevel } from 'kafkajs';
import { kafkaAddresses } from '../../engines/broker/kafka/client';
import { testDatabase, type TestDatabase } from '../support/database';
import { runLumio, settingsOf, startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { type Kafka, startKafka } from './support/kafka';
import type { Engine } from './support/process';
import { startSchemaRegistry } from './support/schema-registry';

interface Heard {
  topic: string;
  /** As it stands in the value. */
  schema_id: number;
  /** What the registry's schema made of it. */
  content: Record<string, unknown> | undefined;
}

/**
 * The whole server on a real Kafka, before and after a schema registry was configured, and a program outside that knows
 * the registry alone.
 */
describe('Lumio on Kafka with a schema registry', () => {
  let kafka: Kafka;
  let registry: Engine;
  let database: TestDatabase;
  let env: Record<string, string>;
  let server: TestServer | undefined;

  beforeAll(async () => {
    kafka = await startKafka();
    registry = await startSchemaRegistry();
    database = await testDatabase(2);
    env = {
      LUMIO_BROKER__URL: kafka.url,
      LUMIO_DATABASE__URL: database.url,
      LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
    };
    // Others were there first: no id of ours is free.
    for (let n = 0; n < 30; n += 1) {
      const schema = JSON.stringify({ type: 'enum', name: `Other${n}`, symbols: ['A'] });
      const answer = await fetch(`${registry.url}/subjects/other-${n}/versions`, {
        method: 'POST',
        headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
        body: JSON.stringify({ schema }),
      });
      expect(answer.status).toBe(200);
    }
  });
  afterAll(async () => {
    await server?.dispose();
    await database?.drop();
    await registry?.kill();
    await kafka?.kill();
  });

  async function serve(more: Record<string, string> = {}): Promise<void> {
    if (server) await server.dispose();
    server = await startServer({ env: { ...env, ...more } });
  }
  const follow = (user_id: number) => new VendorCloud(server!.base_url, server!.credentials).kickFollow(user_id);
  /** Who follows, once there are so many. */
  const followers = (count: number) =>
    eventually(
      async () => {
        const rows = await database.db.query<{ user_id: number }>(
          "select (raw->'follower'->>'user_id')::int as user_id from platform_event_logs where type = 'kick:follower' order by 1",
        );
        return rows.length >= count ? rows.map(({ user_id }) => user_id) : undefined;
      },
      `${count} follows`,
      60_000,
    );

  /** Everything in the topics, as a program reads it that has only the registry. */
  async function outside(topics: string[], until: (heard: Heard[]) => boolean): Promise<Heard[]> {
    const schemas = new Map<number, Type | undefined>();
    const schemaOf = async (id: number) => {
      const answer = await fetch(`${registry.url}/schemas/ids/${id}`);
      const { schema } = (await answer.json()) as { schema?: string };
      return schema === undefined ? undefined : Type.forSchema(JSON.parse(schema) as Schema);
    };
    const heard: Heard[] = [];
    const client = new KafkaJs({ brokers: kafkaAddresses(kafka.url), logLevel: logLevel.NOTHING });
    const consumer = client.consumer({ groupId: `outside-${randomBytes(4).toString('hex')}` });
    await consumer.connect();
    try {
      await consumer.subscribe({ topics, fromBeginning: true });
      await consumer.run({
        eachMessage: async ({ topic, message: { value } }) => {
          const schema_id = value!.readInt32BE(1);
          if (!schemas.has(schema_id)) schemas.set(schema_id, await schemaOf(schema_id));
          const type = schemas.get(schema_id);
          const content =
            type?.typeName === 'record' ? (type.fromBuffer(value!.subarray(5)) as Record<string, unknown>) : undefined;
          heard.push({ topic, schema_id, content });
        },
      });
      await eventually(async () => until(heard) || undefined, 'the records', 60_000);
      return heard;
    } finally {
      await consumer.disconnect();
    }
  }

  test('records before it and records with it are read alike; a program outside decodes what carries the registry ids', async () => {
    await serve();
    expect((await follow(1)).status).toBe(200);
    expect(await followers(1)).toEqual([1]);

    const with_registry = { LUMIO_BROKER__SCHEMA_REGISTRY_URL: registry.url };
    await serve(with_registry);
    expect((await follow(2)).status).toBe(200);
    expect(await followers(2)).toEqual([1, 2]);
    const api = new ApiClient(server!.base_url, server!.credentials.access_token);
    const made = await api.send('POST', '/v1/api-keys', { label: 'Outside', permissions: ['events:read'] });
    expect(made.status).toBe(201);

    const heard = await outside(
      ['platform-events', 'domain-events'],
      (records) =>
        records.filter(({ topic }) => topic === 'platform-events').length === 2 &&
        records.some(({ topic, content }) => topic === 'domain-events' && content?.['type'] === 'api_key:created'),
    );
    const follows = heard.filter(({ topic }) => topic === 'platform-events').sort((a, b) => a.schema_id - b.schema_id);
    expect(follows.map(({ schema_id }) => schema_id)).toEqual([1, 31]);
    expect(follows[0]!.content).toBeUndefined();
    expect(follows[1]!.content).toMatchObject({ type: 'kick:follower', platform: 'kick' });
    // Whom it is about is not said in clear.
    expect(follows[1]!.content!['subject']).toMatch(/^[\w-]{22}$/);

    const rebuilt = await runLumio(['rebuild', 'event-log', '--quiet'], {
      ...settingsOf(server!.data_dir),
      ...env,
      ...with_registry,
    });
    expect(rebuilt).toMatchObject({ code: 0 });
    expect(await followers(2)).toEqual([1, 2]);

    // It goes away: nothing that is written or read asks it again.
    await registry.kill();
    expect((await follow(3)).status).toBe(200);
    expect(await followers(3)).toEqual([1, 2, 3]);
  });

  test('without it records stay readable; a start that is to use it waits for it, and says so when it gives up', async () => {
    await serve();
    expect((await follow(4)).status).toBe(200);
    expect(await followers(4)).toEqual([1, 2, 3, 4]);
    const rebuilt = await runLumio(['rebuild', 'event-log', '--quiet'], { ...settingsOf(server!.data_dir), ...env });
    expect(rebuilt).toMatchObject({ code: 0 });
    expect(await followers(4)).toEqual([1, 2, 3, 4]);
    const refused = await serve({ LUMIO_BROKER__SCHEMA_REGISTRY_URL: registry.url }).then(
      () => 'it started',
      ({ message }: Error) => message,
    );
    expect(refused).toMatch(
      /LUMIO_BROKER__SCHEMA_REGISTRY_URL: the schema registry at 127\.0\.0\.1:\d+ cannot be used: ECONNREFUSED/,
    );
    server = undefined;
  });
});
