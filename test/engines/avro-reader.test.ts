import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { createRelayCodec } from '../../engines/records/relayed';
import { createEnvelopeCodec } from '../../engines/records/schemas';
import { program } from './support/process';

const SCHEMAS = join(__dirname, '../../docs/operating/schemas');
const SAMPLE = { numRuns: 300, seed: 7 };

/**
 * Values that this program writes, read by a library that shares nothing with it, through the files that other programs
 * are given.
 */
describe('fastavro reads', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 200 });
  const maybe = <T>(what: fc.Arbitrary<T>) => fc.option(what);
  const bytes = fc.uint8Array({ maxLength: 5000 }).map((array) => Buffer.from(array));
  const event = fc.record({
    id: fc.uuid(),
    stream: text,
    revision: fc.maxSafeNat(),
    type: text,
    version: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    data: maybe(text),
    metadata: fc.dictionary(text, text),
    recorded_at: text,
  });

  test('record envelopes', () => {
    const envelope = fc.record({
      id: fc.uuid(),
      account_id: fc.uuid(),
      type: text,
      platform: text,
      external_id: maybe(text),
      occurred_at: text,
      received_at: text,
      subject: maybe(text),
      key_id: maybe(fc.uuid()),
      raw: bytes,
      trace: maybe(text),
    });
    const codec = createEnvelopeCodec();
    expectReadAlike('record-envelope', 1, fc.sample(envelope, SAMPLE), (value) => codec.encode(value));
  });

  test('domain events', () => {
    expectReadAlike('domain-event', 2, fc.sample(event, SAMPLE), (value) => createRelayCodec().domainEvent(value));
  });

  test('dead letters, with the record or the event inside', () => {
    const letter = fc.record({
      id: text,
      letter_id: fc.maxSafeNat(),
      status: text,
      attempts: fc.nat(),
      projection: text,
      reason: text,
      error: text,
      topic: fc.constantFrom('platform-events', 'domain-events'),
      partition: fc.nat(),
      position: text,
      type: maybe(text),
      account_id: maybe(text),
      first_failed_at: text,
      last_failed_at: text,
      settled_at: maybe(text),
      record_key: maybe(text),
      record: maybe(bytes),
      event: maybe(event),
    });
    expectReadAlike('dead-letter', 3, fc.sample(letter, SAMPLE), (value) => createRelayCodec().deadLetter(value));
  });

  function expectReadAlike<T extends object>(
    schema: string,
    id: number,
    values: T[],
    encode: (value: T) => Buffer,
  ): void {
    const input = values.map((value) =>
      JSON.stringify({ schema: join(SCHEMAS, `${schema}.avsc`), value: encode(value).toString('base64') }),
    );
    const { status, stdout, stderr } = spawnSync('python3', [join(__dirname, 'support/read_avro.py')], {
      input: `${input.join('\n')}\n`,
      env: { PATH: process.env.PATH, PYTHONPATH: join(program('fastavro', 'fastavro'), '..') },
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
    expect([status, stderr]).toEqual([0, '']);
    const read = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(read).toEqual(values.map((value) => ({ magic: 0, id, value: asJson(value) })));
  }

  /** Bytes as the reader prints them. */
  const asJson = (value: object): unknown =>
    JSON.parse(
      JSON.stringify(value, (_key, inner: unknown) => {
        const { type, data } = (inner ?? {}) as { type?: unknown; data?: unknown };
        return type === 'Buffer' && Array.isArray(data) ? Buffer.from(data as number[]).toString('base64') : inner;
      }),
    );
});
