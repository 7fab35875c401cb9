import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Schema } from 'avsc';
import { ERASED_RAW, type RecordEnvelope } from '../../domain/common/records';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import type { Broker, BrokerRecord, NewRecord } from '../../engines/broker/port';
import { createRecordLog } from '../../engines/records/log';
import { DEAD_LETTER_V1, DOMAIN_EVENT_V1, RELAYED_SCHEMAS } from '../../engines/records/relayed';
import { createEnvelopeCodec, ENVELOPE_V1, SCHEMAS, type WrittenEnvelope } from '../../engines/records/schemas';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { testDatabase, type TestDatabase } from '../support/database';

const envelope = (changes: Partial<RecordEnvelope> = {}): RecordEnvelope => ({
  id: randomUUID(),
  account_id: randomUUID(),
  type: 'kick:follower',
  platform: 'kick',
  external_id: 'kick:01J',
  occurred_at: '2026-01-02T03:04:05.123456789Z',
  received_at: '2026-01-02T03:04:06Z',
  subject: null,
  raw: '{"id":820982911946154508,"name":"Zoë 🎉"}',
  trace: null,
  ...changes,
});

const written = (): WrittenEnvelope => ({ ...envelope(), key_id: null, raw: Buffer.from('{}') });

describe('envelope schemas', () => {
  // A version that may come: one more field, with a default.
  const v2 = {
    ...(ENVELOPE_V1 as object),
    fields: [...(ENVELOPE_V1 as { fields: object[] }).fields, { name: 'region', type: 'string', default: 'eu' }],
  } as unknown as Schema;
  const both = new Map([...SCHEMAS, [2, v2]]);

  test('the wire format is magic byte 0 and the schema id in four bytes', () => {
    const value = createEnvelopeCodec().encode(written());
    expect(value.subarray(0, 5)).toEqual(Buffer.from([0, 0, 0, 0, 1]));
  });

  test('a newer reader gives old records the default', () => {
    const record = written();
    expect({ ...createEnvelopeCodec(both, 2).decode(createEnvelopeCodec().encode(record)) }).toEqual({
      ...record,
      region: 'eu',
    });
  });

  test('an older reader passes over what it does not know', () => {
    const record = written();
    const value = createEnvelopeCodec(both, 2).encode({ ...record, region: 'us' } as WrittenEnvelope);
    expect({ ...createEnvelopeCodec(both, 1).decode(value) }).toEqual(record);
  });

  test('a schema that cannot be read as the reader stops the start', () => {
    const broken = new Map([
      ...SCHEMAS,
      [2, { ...(ENVELOPE_V1 as object), fields: [{ name: 'id', type: 'long' }] } as unknown as Schema],
    ]);
    expect(() => createEnvelopeCodec(broken)).toThrow();
  });

  test.each([
    ['empty', Buffer.alloc(0), 'magic byte'],
    ['another magic byte', Buffer.from([1, 0, 0, 0, 1, 2]), 'magic byte'],
    ['a newer schema', Buffer.from([0, 0, 0, 0, 9, 2]), 'unknown schema id 9'],
    ['a cut body', createEnvelopeCodec().encode(written()).subarray(0, 40), 'cut off'],
    ['bytes after the body', Buffer.concat([createEnvelopeCodec().encode(written()), Buffer.from('x')]), 'longer'],
    ['no Avro', Buffer.from([0, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]), 'broken Avro'],
  ])('%s does not decode', (_name, value, message) => {
    expect(() => createEnvelopeCodec().decode(value)).toThrow(message);
  });
});

describe('record log', () => {
  let target: TestDatabase;
  let broker: Broker;
  const master_keys = parseMasterKeys(`m:${Buffer.alloc(32, 7).toString('base64')}`);
  const keys = () => createSubjectKeys({ db: target.db, master_keys });
  beforeAll(async () => {
    target = await testDatabase();
    broker = createPostgresBroker({ pool: target.db.pool, wakeups: createLocalWakeups() });
    await broker.ensureTopics(['chat-events', 'platform-events'], 2);
  });
  afterAll(async () => {
    await broker.close();
    await target.drop();
  });

  async function stored(topic: string): Promise<BrokerRecord[]> {
    const records: BrokerRecord[] = [];
    for (const partition of (await broker.bounds(topic)).keys())
      for await (const page of broker.read(topic, partition, 0)) records.push(...page);
    return records;
  }

  test('records come back exactly, about nobody in clear and about somebody encrypted, until that person is erased', async () => {
    const subject_keys = keys();
    const log = createRecordLog({ broker, subject_keys });
    const account_id = randomUUID();
    const clear = envelope({ account_id, external_id: null, trace: '00-abc-def-01' });
    const personal = envelope({ account_id, subject: 'kick:987', raw: '{"message":"canary 🎉"}' });
    const large = envelope({ account_id, subject: '', raw: JSON.stringify('x'.repeat(900_000)) });
    await log.append('chat-events', [clear, personal, large]);

    const lying = await stored('chat-events');
    expect(lying.every(({ key }) => key === account_id)).toBe(true);
    expect(lying.filter(({ value }) => value.includes('canary'))).toHaveLength(0);
    const place = (n: number) => ({ topic: 'chat-events', partition: lying[n]!.partition, offset: lying[n]!.offset });
    const other = createRecordLog({ broker, subject_keys: keys() });
    // The person is named by a hash, in the bytes as well.
    const subject = (await subject_keys.hashesOf(['kick:987'])).get('kick:987')!;
    expect(lying.filter(({ value }) => value.includes('kick:987'))).toHaveLength(0);
    const [subject_key] = await subject_keys.keysOf('kick:987');
    const written = [clear, { ...personal, subject, subject_key }, { ...large, subject: null }];
    expect(await other.decode(lying)).toEqual({
      records: written.map((record, n) => ({ ...record, ...place(n) })),
      undecodable: [],
    });

    await subject_keys.erase('kick:987');
    const { records } = await createRecordLog({ broker, subject_keys: keys() }).decode(lying);
    expect(records.map(({ raw }) => raw)).toEqual([clear.raw, ERASED_RAW, large.raw]);
  });

  test('a record handed over in memory reads as its bytes do, and is erased with them', async () => {
    const subject_keys = keys();
    const written: NewRecord[] = [];
    let hands_over = true;
    const keeping = {
      publish: async (_topic: string, records: readonly NewRecord[]) => void written.push(...records),
      handsOver: () => hands_over,
    };
    const log = createRecordLog({ broker: keeping as unknown as Broker, subject_keys });
    const records = [
      envelope(),
      envelope({ subject: 'kick:31' }),
      envelope({ external_id: 'kick:\ud83c', raw: '"\udf89"' }),
      envelope({ subject: 'kick:32', external_id: 'kick:\ud83c\udf89' }),
    ];
    await log.append('platform-events', records);
    const lying = (handed: boolean) =>
      written.map(({ key, value, opened }, offset): BrokerRecord => ({
        ...{ topic: 'platform-events', partition: 0, offset, headers: {}, appended_at: '2026-01-02T03:04:06Z' },
        ...{ key, value, opened: handed ? opened : undefined },
      }));
    expect(written.map(({ opened }) => opened !== undefined)).toEqual([true, true, false, true]);
    const read = await log.decode(lying(true));
    expect(read).toEqual(await log.decode(lying(false)));
    expect(read.records.map(({ raw }) => raw)).toEqual([records[0]!.raw, records[1]!.raw, '"\ufffd"', records[3]!.raw]);

    await subject_keys.erase('kick:31');
    const erased = await log.decode(lying(true));
    expect(erased.records[1]!.raw).toBe(ERASED_RAW);
    expect(erased).toEqual(await log.decode(lying(false)));

    hands_over = false;
    await log.append('platform-events', [envelope()]);
    expect(written.at(-1)!.opened).toBeUndefined();
  });

  test('records of one account keep the order of the calls, whoever waits for a key; no other account waits', async () => {
    const subject_keys = keys();
    let open!: () => void;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const slow = {
      ...subject_keys,
      forReading: subject_keys.forReading.bind(subject_keys),
      forWriting: async (subjects: readonly string[]) => {
        await gate;
        return subject_keys.forWriting(subjects);
      },
    } as typeof subject_keys;
    const log = createRecordLog({ broker, subject_keys: slow });
    const [mine, other, third] = [randomUUID(), randomUUID(), randomUUID()];
    const append = (...envelopes: Partial<RecordEnvelope>[]) => log.append('chat-events', envelopes.map(envelope));
    const sent = [
      append({ account_id: mine, external_id: '1', subject: 'kick:55' }),
      append({ account_id: mine, external_id: '2' }, { account_id: third, external_id: '2' }),
      append({ account_id: mine, external_id: '3' }),
    ];
    await append({ account_id: other, external_id: 'alone' });
    let done = false;
    void Promise.all(sent).then(() => (done = true));
    // Behind them in the broker.
    await append({ account_id: other, external_id: 'after' });
    expect(done).toBe(false);
    open();
    const ends = await Promise.all(sent);
    const { records } = await log.decode(await stored('chat-events'));
    const of = (account: string) => records.filter(({ account_id }) => account_id === account);
    expect(of(mine).map(({ external_id }) => external_id)).toEqual(['1', '2', '3']);
    expect(of(third).map(({ external_id }) => external_id)).toEqual(['2']);
    ends.forEach((of_call, n) => {
      const own = records.filter(({ external_id }) => external_id === `${n + 1}`);
      const lies = new Map<number, number>();
      for (const { partition, offset } of own) lies.set(partition, Math.max(lies.get(partition) ?? 0, offset + 1));
      expect(of_call).toEqual(lies);
    });
    // One that fails lets the next one go.
    const refused = append({ account_id: mine, external_id: 'x'.repeat(3 * 1024 * 1024) });
    const next = append({ account_id: mine, external_id: '4' });
    await expect(refused).rejects.toThrow(/bytes, the log takes/);
    await next;
  });

  test('an append whose key is at hand overtakes none of its account that waits for one', async () => {
    const subject_keys = keys();
    const known = await subject_keys.forWriting(['kick:known']);
    let open!: () => void;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const slow = {
      atHand: (subjects: readonly string[]) => (subjects.every((one) => known.has(one)) ? known : undefined),
      forWriting: async (subjects: readonly string[]) => {
        await gate;
        return subject_keys.forWriting(subjects);
      },
    } as typeof subject_keys;
    const published: string[] = [];
    const keeping = {
      publish: async (_topic: string, records: readonly NewRecord[]) => {
        published.push(...records.map(({ key }) => key));
        return new Map();
      },
    };
    const log = createRecordLog({ broker: keeping as unknown as Broker, subject_keys: slow });
    const [mine, other] = [randomUUID(), randomUUID()];
    const append = (account_id: string, subject: string) =>
      log.append('chat-events', [envelope({ account_id, subject })]);
    const waiting = [append(mine, 'kick:new'), append(mine, 'kick:known')];
    await append(other, 'kick:known');
    expect(published).toEqual([other]);
    open();
    await Promise.all(waiting);
    await append(mine, 'kick:known');
    expect(published).toEqual([other, mine, mine, mine]);
  });

  test('an append that fails lets nobody past those before it', async () => {
    const subject_keys = keys();
    let open!: () => void;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const uneven = {
      ...subject_keys,
      forWriting: async (subjects: readonly string[]) => {
        if (subjects.includes('kick:refused')) throw new Error('the key store is away');
        await gate;
        return subject_keys.forWriting(subjects);
      },
    } as typeof subject_keys;
    const log = createRecordLog({ broker, subject_keys: uneven });
    const mine = randomUUID();
    const published: string[] = [];
    const append = async (external_id: string, subject: string | null) => {
      await log.append('chat-events', [envelope({ account_id: mine, external_id, subject })]);
      published.push(external_id);
    };
    const first = append('1', 'kick:55');
    await expect(append('2', 'kick:refused')).rejects.toThrow('the key store is away');
    const third = append('3', null);
    // Another account's append goes all the way meanwhile: what was free to go has gone.
    await log.append('chat-events', [envelope()]);
    expect(published).toEqual([]);
    open();
    await Promise.all([first, third]);
    expect(published).toEqual(['1', '3']);
  });

  test('what does not decode comes apart: broken values, and a raw moved to another record', async () => {
    const log = createRecordLog({ broker, subject_keys: keys() });
    const [mine, theirs] = [envelope({ subject: 'kick:1' }), envelope()];
    await log.append('platform-events', [mine]);
    const [record] = await stored('platform-events');
    const codec = createEnvelopeCodec();
    const moved = { ...record!, value: codec.encode({ ...codec.decode(record!.value), id: theirs.id }) };
    const broken = { ...record!, value: Buffer.from('nonsense') };
    const { records, undecodable } = await log.decode([broken, record!, moved]);
    expect(records.map(({ id }) => id)).toEqual([mine.id]);
    expect(undecodable.map(({ error }) => error.message)).toEqual([
      expect.stringContaining('magic byte'),
      expect.stringContaining(`raw of record ${theirs.id} does not decrypt`),
    ]);
  });

  test('a record that names several persons is read until one of them is erased, whoever it is', async () => {
    const account_id = randomUUID();
    const persons = ['kick:giver', 'kick:mod', 'kick:quoted'];
    const subject_keys = keys();
    const log = createRecordLog({ broker, subject_keys });
    await log.append('platform-events', [
      envelope({ account_id, subject: 'kick:giver', subjects: ['kick:mod', 'kick:quoted'], raw: '{"canary":1}' }),
      envelope({ account_id, subject: null, subjects: ['kick:mod'], raw: '{"canary":2}' }),
      envelope({ account_id, subject: 'kick:quoted', raw: '{"canary":3}' }),
    ]);
    const lying = (await stored('platform-events')).filter(({ key }) => key === account_id);
    const hashes = await subject_keys.hashesOf(persons);
    const [giver, mod, quoted] = persons.map((person) => hashes.get(person)!);
    expect(await log.subjectsOf(lying)).toEqual([[giver, mod, quoted], [mod], [quoted]]);
    const said = lying.map(({ value, headers }) => `${value.toString('latin1')} ${JSON.stringify(headers)}`);
    expect(said.filter((text) => /canary|kick:(?:giver|mod|quoted)/.test(text))).toEqual([]);

    const read = async () => (await createRecordLog({ broker, subject_keys: keys() }).decode(lying)).records;
    expect(await read()).toMatchObject([
      { subject: giver, subjects: [mod, quoted], raw: '{"canary":1}' },
      { subject: null, subjects: [mod], raw: '{"canary":2}' },
      { subject: quoted, raw: '{"canary":3}' },
    ]);
    await subject_keys.erase('kick:mod');
    expect((await read()).map(({ raw }) => raw)).toEqual([ERASED_RAW, ERASED_RAW, '{"canary":3}']);
  });
});

describe('relayed schemas', () => {
  test('no id stands for two schemas', () => {
    expect([...SCHEMAS.keys()].filter((id) => RELAYED_SCHEMAS.has(id))).toEqual([]);
  });

  test.each([
    ['record-envelope', ENVELOPE_V1],
    ['domain-event', DOMAIN_EVENT_V1],
    ['dead-letter', DEAD_LETTER_V1],
  ])('docs/operating/schemas/%s.avsc is what is written', (name, schema) => {
    const file = join(__dirname, `../../docs/operating/schemas/${name}.avsc`);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(schema);
  });

  test('every schema has its file, and topics.md names it with its id', () => {
    const files = readdirSync(join(__dirname, '../../docs/operating/schemas')).filter((file) => file.endsWith('.avsc'));
    const topics = readFileSync(join(__dirname, '../../docs/operating/topics.md'), 'utf8');
    const rows = [...topics.matchAll(/^\| (\d+) \s*\| \[([\w-]+\.avsc)\]\(schemas\/\2\)/gm)].map(([, id, file]) => [
      Number(id),
      file,
    ]);
    const written = new Map([...SCHEMAS, ...RELAYED_SCHEMAS]);
    expect(rows.map(([id]) => id)).toEqual([...written.keys()]);
    expect(rows.map(([, file]) => file).sort()).toEqual(files.sort());
  });
});
