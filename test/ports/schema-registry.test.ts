import { Type, type Schema } from 'avsc';
import { randomUUID } from 'node:crypto';
import { openSchemaIds } from '../../engines/records/open-schema-ids';
import { SettingsSchema } from '../../kernel/settings/settings';
import type { RecordEnvelope } from '../../domain/common/records';
import type { Broker, BrokerRecord, NewRecord } from '../../engines/broker/port';
import { createRecordLog } from '../../engines/records/log';
import { createRelayCodec, DEAD_LETTER_V1, DOMAIN_EVENT_V1 } from '../../engines/records/relayed';
import { SCHEMA_HEADER, type SchemaIds } from '../../engines/records/schema-ids';
import { createSchemaRegistry } from '../../engines/records/schema-registry';
import { ENVELOPE_V1, SCHEMAS } from '../../engines/records/schemas';
import type { SubjectKeys } from '../../privacy/subject-keys/port';
import { keptLog, silentLog } from '../support/log';
import { TestSchemaRegistry } from '../support/schema-registry';

const envelope = (): RecordEnvelope => ({
  id: randomUUID(),
  account_id: randomUUID(),
  type: 'kick:follower',
  platform: 'kick',
  external_id: 'kick:01J',
  occurred_at: '2026-01-02T03:04:05Z',
  received_at: '2026-01-02T03:04:06Z',
  subject: null,
  raw: '{"id":1}',
  trace: '00-abc-def-01',
});

describe('ids of a schema registry', () => {
  let registry: TestSchemaRegistry;
  beforeEach(async () => {
    registry = await TestSchemaRegistry.start();
  });
  afterEach(() => registry.down());

  const settings = (schema_registry_url: string, url = 'kafka://127.0.0.1:9092') =>
    SettingsSchema.parse({ broker: { url, schema_registry_url } });
  const open = (url = registry.url(), log = silentLog): Promise<SchemaIds> => openSchemaIds(settings(url), log, true);
  const failure = (opening: Promise<unknown>): Promise<string> =>
    opening.then(
      () => 'it did not fail',
      ({ message }: Error) => message,
    );

  /** A log over a broker that only keeps what is published. */
  function keeping(schema_ids?: SchemaIds) {
    const published: NewRecord[] = [];
    const broker = {
      publish: async (_topic: string, records: readonly NewRecord[]) => void published.push(...records),
    };
    const log = createRecordLog({
      broker: broker as unknown as Broker,
      subject_keys: {} as SubjectKeys,
      trace_headers: true,
      ...(schema_ids && { schema_ids }),
    });
    const lying = (): BrokerRecord[] =>
      published.map(({ key, value, headers = {} }, offset) => ({
        topic: 'platform-events',
        partition: 0,
        offset,
        key,
        value,
        headers,
        appended_at: '2026-01-02T03:04:06Z',
      }));
    return { log, lying };
  }

  test('a new registry gets every schema under its topic, and gives our own ids; at the next start they are found', async () => {
    await open();
    const subjects = ['platform-events', 'chat-events', 'webhook-events', 'stream-samples', 'domain-events'];
    expect([...registry.subjects.keys()].sort()).toEqual(
      subjects.flatMap((topic) => [`${topic}-value`, `${topic}.dead-letters-value`]).sort(),
    );
    const texts = [ENVELOPE_V1, DOMAIN_EVENT_V1, DEAD_LETTER_V1].map((schema) => JSON.stringify(schema));
    expect([...registry.texts]).toEqual(texts.map((text, n) => [n + 1, text]));
    registry.seen.length = 0;
    await open();
    expect(registry.seen.filter((line) => line.includes('/versions'))).toEqual([]);
  });

  test('where others were first, values carry the registry ids, and anyone can decode them with its schema', async () => {
    for (let n = 0; n < 40; n += 1)
      registry.register(`other-${n}`, JSON.stringify({ type: 'enum', name: `E${n}`, symbols: ['A'] }));
    const ids = await open();
    const { log, lying } = keeping(ids);
    const record = envelope();
    await log.append('platform-events', [record]);
    const [stored] = lying();
    const id = stored!.value.readInt32BE(1);
    expect(id).toBe(41);
    expect(stored!.headers).toEqual({ [SCHEMA_HEADER]: '1', traceparent: record.trace });
    const outside = Type.forSchema(JSON.parse(registry.texts.get(id)!) as Schema);
    expect(outside.fromBuffer(stored!.value.subarray(5))).toMatchObject({ id: record.id, external_id: 'kick:01J' });
    const relayed = createRelayCodec(ids);
    const event = {
      ...{ id: randomUUID(), stream: 's', revision: 0, type: 'x:y', version: 1, data: '{}', metadata: {} },
      recorded_at: '2026-01-02T03:04:05Z',
    };
    const value = relayed.domainEvent(event);
    expect(registry.texts.get(value.readInt32BE(1))).toBe(JSON.stringify(DOMAIN_EVENT_V1));
  });

  test('Lumio reads what it wrote before, with, and after the registry; ids that mean something else there do no harm', async () => {
    // The ids that are ours belong to others there.
    for (let n = 0; n < 7; n += 1)
      registry.register(`other-${n}`, JSON.stringify({ type: 'enum', name: `E${n}`, symbols: ['A'] }));
    const before = keeping();
    const records = [envelope(), envelope()];
    await before.log.append('platform-events', [records[0]!]);
    const ids = await open();
    const during = keeping(ids);
    await during.log.append('platform-events', [records[1]!]);
    const lying = [...before.lying(), ...during.lying()];
    expect(lying.map(({ value }) => value.readInt32BE(1))).toEqual([1, 8]);
    await registry.down();
    const readers = [
      before.log,
      during.log,
      keeping(createSchemaRegistry({ url: registry.url(), schemas: SCHEMAS, written: [], log: silentLog })).log,
    ];
    for (const reader of readers) {
      const { records: read, undecodable } = await reader.decode(lying);
      expect(undecodable).toEqual([]);
      expect(read.map(({ id }) => id)).toEqual(records.map(({ id }) => id));
    }
    // A tool that copies records without their headers leaves the registry's ids alone.
    const bare = lying.map((record) => ({ ...record, headers: {} }));
    expect((await during.log.decode(bare)).undecodable).toEqual([]);
    expect((await before.log.decode(bare)).undecodable.map(({ error }) => error.message)).toEqual([
      expect.stringContaining('unknown schema id 8'),
    ]);
    // A newer Lumio's schema stays unknown, whatever id the registry gave it.
    const newer = { ...lying[1]!, headers: { [SCHEMA_HEADER]: '9' } };
    expect((await during.log.decode([newer])).undecodable[0]!.error.message).toContain('unknown schema id 9');
  });

  test('a registry that goes away later is not missed; one that comes late, or falters, is waited for', async () => {
    await registry.down();
    const log = keptLog();
    const opening = open(registry.url(), log);
    while (log.lines.length < 2) await new Promise((wait) => setTimeout(wait, 20));
    registry.failing = { status: 503, left: 3 };
    await registry.up();
    const ids = await opening;
    await registry.down();
    const { log: records, lying } = keeping(ids);
    await records.append('platform-events', [envelope()]);
    expect(lying()[0]!.value.readInt32BE(1)).toBe(1);
  });

  test('a command asks the registry when it writes, not before', async () => {
    const ids = await openSchemaIds(settings(registry.url()), silentLog, false);
    expect(registry.seen).toEqual([]);
    const { log, lying } = keeping(ids);
    await log.append('platform-events', [envelope()]);
    expect(lying()).toHaveLength(1);
    expect(registry.seen.length).toBeGreaterThan(0);
  });

  test('login by the URL; a wrong one, and everything else that is wrong, is one line without the password', async () => {
    registry.login = { username: 'lumio', password: 'p@ss:word' };
    await open(registry.url('lumio:p%40ss%3Aword@'));
    const refused = await failure(open(registry.url('lumio:secret@')));
    expect(refused).toMatch(
      /^LUMIO_BROKER__SCHEMA_REGISTRY_URL: the schema registry at 127\.0\.0\.1:\d+ refuses the login \(401\): Unauthorized$/,
    );
    registry.login = undefined;

    registry.subjects.clear();
    registry.register(
      'chat-events-value',
      JSON.stringify({ type: 'record', name: 'Other', fields: [{ name: 'x', type: 'int' }] }),
    );
    expect(await failure(open())).toMatch(
      /holds a schema under chat-events-value that ours is not compatible with.*READER_FIELD_MISSING/,
    );
    registry.subjects.clear();
    registry.lies = JSON.stringify({ type: 'record', name: 'Other', fields: [] });
    expect(await failure(open())).toMatch(/gave platform-events-value the id \d+, and has another schema under it$/);
    registry.lies = undefined;
    expect(await failure(open(`${registry.url()}/elsewhere`))).toMatch(
      /does not speak the registry's protocol \(404 for platform-events-value\)$/,
    );
    registry.failing = { status: 422, left: 1 };
    expect(await failure(open())).toMatch(/does not speak the registry's protocol \(422/);
    const port = new URL(registry.url()).port;
    await registry.down();
    const nowhere = createSchemaRegistry({
      url: `http://u:secret@127.0.0.1:${port}`,
      schemas: SCHEMAS,
      written: [{ topic: 't', schema_id: 1 }],
      log: silentLog,
      wait_ms: 300,
    });
    const gone = await failure(nowhere.ready());
    expect(gone).toBe(`the schema registry at 127.0.0.1:${port} cannot be used: ECONNREFUSED`);
    for (const line of [refused, gone]) expect(line).not.toMatch(/secret|\n/);
    const beside = openSchemaIds(settings(registry.url(), 'postgres'), silentLog, true);
    expect(await failure(beside)).toMatch(/^LUMIO_BROKER__SCHEMA_REGISTRY_URL .* has no meaning without kafka:/);
  });
});
