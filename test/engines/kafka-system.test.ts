import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from 'avsc';
import { ConfigResourceTypes, Kafka as KafkaJs, logLevel } from 'kafkajs';
import { kafkaAddresses } from '../../engines/broker/kafka/client';
import type { RelayedDomainEvent } from '../../engines/records/port';
import { DOMAIN_EVENT_V1 } from '../../engines/records/relayed';
import { Client } from '../support/realtime';
import { runLumio, settingsOf, spawnLumio, startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { type Kafka, startKafka } from './support/kafka';

/** The whole server with its records in a real Kafka. */
describe('Lumio on Kafka', () => {
  let kafka: Kafka;
  let env: Record<string, string>;
  let server: TestServer;
  let api: ApiClient;

  beforeAll(async () => {
    kafka = await startKafka();
    env = { LUMIO_BROKER__URL: kafka.url, LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}` };
    server = await startServer({ env });
    api = new ApiClient(server.base_url, server.credentials.access_token);
  });
  afterAll(async () => {
    await server?.dispose();
    await kafka.kill();
  });
  const stored = (query: string) => server.database!.db.query(query);

  test('a webhook arrives on the socket and in the APIs; nothing is in the Postgres log', async () => {
    const channel = `events:${server.credentials.account_id}`;
    const minted = await api.send('POST', '/v1/tokens/me', {});
    const token = (minted.body?.data?.token as string | undefined) ?? server.credentials.access_token;
    const client = await Client.open(server.ws_url, token);
    expect((await client.subscribe(channel)).type).toBe('subscribed');
    const vendors = new VendorCloud(server.base_url, server.credentials);
    expect((await vendors.kickFollow(4711)).status).toBe(200);
    const live = await client.next((message) => JSON.stringify(message).includes('4711'), 'the follow');
    expect(live.channel).toBe(channel);
    client.end();
    const [event] = await eventually(async () => {
      const events = await api.allEvents('&types=kick:follower&user_id=4711');
      return events.length > 0 ? events : undefined;
    }, 'the event');
    expect(event).toMatchObject({ type: 'kick:follower', platform: 'kick' });
    expect(await stored('select 1 from broker_topics')).toEqual([]);
    const engines = await stored("select distinct engine from checkpoints where source <> 'domain-events'");
    for (const { engine } of engines) expect(engine).toMatch(/^kafka:/);
  });

  test('what the API does reaches a program outside, in a consumer group of its own', async () => {
    const outside = new KafkaJs({ brokers: kafkaAddresses(kafka.url), logLevel: logLevel.NOTHING });
    const consumer = outside.consumer({ groupId: 'outside' });
    await consumer.connect();
    const heard: { key: string; event: RelayedDomainEvent }[] = [];
    try {
      await consumer.subscribe({ topics: ['domain-events'], fromBeginning: true });
      await consumer.run({
        eachMessage: async ({ message: { key, value } }) => {
          const event = Type.forSchema(DOMAIN_EVENT_V1).fromBuffer(value!.subarray(5)) as RelayedDomainEvent;
          heard.push({ key: key!.toString(), event });
        },
      });
      const { body } = await api.send('POST', '/v1/api-keys', { label: 'Outside', permissions: ['events:read'] });
      const made = await eventually(
        async () => heard.find(({ event }) => event.type === 'api_key:created' && event.data?.includes('Outside')),
        'the key of the API in the topic',
      );
      expect(made.key).toBe(made.event.stream);
      expect(made.event).toMatchObject({ revision: 0, version: 1 });
      expect(made.event.metadata.account_id).toBe(server.credentials.account_id);
      expect(JSON.stringify(body)).toContain(JSON.parse(made.event.data!).key_id ?? JSON.parse(made.event.data!).id);
      const stored_events = await stored('select id from domain_events');
      await eventually(
        async () => stored_events.every(({ id }) => heard.some(({ event }) => event.id === id)) || undefined,
        'every event of the store',
      );
    } finally {
      await consumer.disconnect();
    }
  });

  test('killed in a flood of webhooks, each one counts once', async () => {
    const acked = new Set<number>();
    let next = 10_000;
    for (let round = 0; round < 2; round += 1) {
      const vendors = new VendorCloud(server.base_url, server.credentials);
      const want = acked.size + 80;
      let over = false;
      const senders = Array.from({ length: 6 }, async () => {
        while (!over) {
          const user_id = (next += 1);
          const id = randomUUID();
          const at = new Date().toISOString();
          // A vendor sends again what was not answered with 2xx; some also send again what was.
          const [first] = await Promise.allSettled([
            vendors.kickFollow(user_id, id, at),
            vendors.kickFollow(user_id, id, at),
          ]);
          if (first.status === 'fulfilled' && first.value.status === 200) acked.add(user_id);
          if (first.status === 'rejected') over = true;
        }
      });
      await eventually(async () => (acked.size >= want ? true : undefined), 'the flood', 60_000);
      await server.kill();
      await Promise.all(senders);
      server = await server.restart();
    }
    api = new ApiClient(server.base_url, server.credentials.access_token);
    const counted = async () => {
      const counts = new Map<number, number>();
      for (const { raw } of await api.allEvents('&types=kick:follower')) {
        const body = (typeof raw === 'string' ? JSON.parse(raw) : raw) as { follower: { user_id: number } };
        counts.set(body.follower.user_id, (counts.get(body.follower.user_id) ?? 0) + 1);
      }
      return counts;
    };
    const counts = await eventually(
      async () => {
        const now = await counted();
        return [...acked].every((user_id) => now.has(user_id)) ? now : undefined;
      },
      'every acknowledged follow',
      60_000,
    );
    expect([...counts].filter(([, count]) => count !== 1)).toEqual([]);
  });

  test('the event log is rebuilt from it while the server runs', async () => {
    const rows = async () => stored('select id, type, external_id from platform_event_logs order by id');
    const before = await eventually(async () => {
      const [first, second] = [await rows(), await rows()];
      return first.length === second.length ? first : undefined;
    }, 'a quiet log');
    expect(before.length).toBeGreaterThan(100);
    const { code, stdout, stderr } = await runLumio(['rebuild', 'event-log'], {
      ...env,
      LUMIO_DATA_DIR: server.data_dir,
      LUMIO_DATABASE__URL: server.database!.url,
    });
    expect([code, stdout + stderr]).toEqual([0, expect.any(String)]);
    expect(await rows()).toEqual(before);
    const vendors = new VendorCloud(server.base_url, server.credentials);
    expect((await vendors.kickFollow(77)).status).toBe(200);
    await eventually(async () => ((await rows()).length === before.length + 1 ? true : undefined), 'the next event');
  });

  test.each([
    ['amqp://x', {}, /LUMIO_BROKER__URL: must be postgres, or kafka:\/\/host:port/],
    ['kafka://127.0.0.1:9', { LUMIO_BROKER__SASL_MECHANISM: 'plain' }, /LUMIO_BROKER__SASL_USERNAME/],
  ])('%s %j stops the start with one line', async (url, more, line) => {
    const error = await startServer({ env: { ...more, LUMIO_BROKER__URL: url } }).then(
      async (started) => {
        await started.dispose();
        return new Error('it started');
      },
      (failure: Error) => failure,
    );
    expect(error.message).toMatch(line);
    expect(error.message).not.toMatch(/\n\s+at /);
  });

  test('a paused Kafka: health says so, webhooks are asked for again and no database is blamed, a start waits for it', async () => {
    const health = async () => (await api.get('/v1/health')).body.data;
    expect(await health()).toMatchObject({ status: 'healthy', services: { broker: { status: 'healthy' } } });
    const data_dir = mkdtempSync(join(tmpdir(), 'lumio-paused-'));
    const starting: { output: string; child?: ReturnType<typeof spawnLumio> } = { output: '' };
    process.kill(kafka.pid, 'SIGSTOP');
    try {
      const paused = await eventually(async () => {
        const data = await health();
        return data.services.broker.status === 'unhealthy' ? data : undefined;
      }, 'the health to say so');
      const up = { status: 'healthy' };
      expect(paused).toMatchObject({ status: 'degraded', services: { database: up, event_store: up, blobs: up } });
      const vendors = new VendorCloud(server.base_url, server.credentials);
      const refused = await vendors.kickFollow(4712, 'while-paused');
      expect(refused.status).toBe(503);
      expect(JSON.parse(refused.text)).toMatchObject({ error: 'INTERNAL_SERVER_ERROR' });
      starting.child = spawnLumio(['start'], { ...server.env, ...settingsOf(data_dir) });
      starting.child.stdout.on('data', (chunk: Buffer) => (starting.output += chunk.toString()));
      // Its turn with the paused brokers is over before it could have become ready.
      for (let rounds = 0; rounds < 3; rounds += 1) {
        expect((await vendors.kickFollow(4712, 'while-paused')).status).toBe(503);
      }
      expect(starting.output).toBe('');
    } finally {
      process.kill(kafka.pid, 'SIGCONT');
    }
    await eventually(async () => starting.output.includes('lumio ready at') || undefined, 'the start', 60_000);
    await eventually(async () => (await health()).status === 'healthy' || undefined, 'the health');
    const ended = new Promise((done) => starting.child!.once('exit', done));
    starting.child!.kill('SIGTERM');
    expect(await ended).toBe(0);
    rmSync(data_dir, { recursive: true, force: true });
  });

  test('a start on a topic with a limit is refused in one line, and one without it serves again', async () => {
    const admin = new KafkaJs({ brokers: kafkaAddresses(kafka.url), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    const limit = (value: string) =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [
          { type: ConfigResourceTypes.TOPIC, name: 'chat-events', configEntries: [{ name: 'retention.ms', value }] },
        ],
      });
    try {
      await server.stop();
      await limit('86400000');
      const line = 'lumio: topic chat-events does not keep its records: retention.ms is 86400000, and must be -1\n';
      expect(await runLumio(['start'], server.env)).toEqual({ code: 1, stdout: '', stderr: line });
    } finally {
      await limit('-1');
      await admin.disconnect();
    }
    server = await server.restart();
    expect((await fetch(`${server.base_url}/v1/health`)).status).toBe(200);
  });
});
