import fc from 'fast-check';
import { decodeText, readJson, storableJson } from '../../ingest/runtime/parse/text';
import { eventTime, isBefore, mayBeBefore } from '../../ingest/runtime/parse/times';
import { parseTime, readSeconds, readTime } from '../../lib/time/vendor-times';

const NOW = Date.parse('2026-11-21T10:00:00Z');

describe('text that stores keep', () => {
  test.each([
    [String.raw`"a\u0000b"`, String.raw`"a\ufffdb"`],
    [String.raw`"a\\u0000b"`, String.raw`"a\\u0000b"`],
    [String.raw`"\\\u0000"`, String.raw`"\\\ufffd"`],
    [String.raw`"\ud83d\ude00"`, String.raw`"\ud83d\ude00"`],
    [String.raw`"\ud83d"`, String.raw`"\ufffd"`],
    [String.raw`"\ude00\ud83d"`, String.raw`"\ufffd\ufffd"`],
    [String.raw`"\ud83d\ud83d\uDE00"`, String.raw`"\ufffd\ud83d\uDE00"`],
    [String.raw`"\ud83d\u0041"`, String.raw`"\ufffd\u0041"`],
    [String.raw`"\u0001\ue000"`, String.raw`"\u0001\ue000"`],
  ])('%s', (text, stored) => expect(storableJson(text)).toBe(stored));

  test('bytes that are no UTF-8, and NUL bytes, are replaced', () => {
    expect(decodeText(Buffer.from([0x22, 0x00, 0xff, 0xed, 0xa0, 0x80, 0x22]))).toMatch(/^"\ufffd+"$/);
    expect(decodeText(Buffer.from('\ufeff{}'))).toBe('{}');
  });

  test('whatever JSON comes, the stored copy parses to the same value with the bad characters replaced', () => {
    const replaced = (value: unknown): unknown => {
      if (typeof value === 'string') return value.replace(/[\0\p{Surrogate}]/gu, '\ufffd');
      if (Array.isArray(value)) return value.map(replaced);
      return value;
    };
    const text = fc.array(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: fc.constantFrom('\0', '\ud83d', '\ude00', '\\', 'u', '0', '"') }),
      ),
    );
    fc.assert(
      fc.property(text, (value) => {
        const stored = storableJson(JSON.stringify(value));
        expect(JSON.parse(stored)).toEqual(replaced(value));
      }),
    );
  });

  test('long integers are read as text, and nothing else changes', () => {
    const text =
      '{"id":820982911946154508,"n":-12345678901234567,"f":1.2345678901234567,"e":1234567890123456e2,"s":"820982911946154508 \\" 1234567890123456","k":12}';
    expect(readJson(text)).toEqual({
      ok: true,
      value: {
        id: '820982911946154508',
        n: '-12345678901234567',
        f: 1.2345678901234567,
        e: 1234567890123456e2,
        s: '820982911946154508 " 1234567890123456',
        k: 12,
      },
    });
  });

  test('wherever they stand, and however long they are', () => {
    for (let before = 0; before < 34; before += 1) {
      for (let digits = 1; digits < 36; digits += 1) {
        const number = '1'.repeat(digits);
        const text = `{"${'k'.repeat(before)}":${number},"b":7}`;
        const value = { ['k'.repeat(before)]: digits < 16 ? Number(number) : number, b: 7 };
        expect(readJson(text)).toEqual({ ok: true, value });
      }
    }
  });
});

describe('times', () => {
  test.each([
    ['2026-11-21T10:00:00Z', '2026-11-21T10:00:00.000Z'],
    ['2026-11-21t10:00:00.123456789z', '2026-11-21T10:00:00.123Z'],
    ['2026-11-21T10:00:00.5+02:30', '2026-11-21T07:30:00.500Z'],
    ['2026-11-21 10:00:00-0530', '2026-11-21T15:30:00.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['2000-02-29T23:59:60Z', '2000-03-01T00:00:00.000Z'],
    [' 2026-04-30T10:00:00.120000000+18:00 ', '2026-04-29T16:00:00.120Z'],
    ['2026-11-21T10:00:00.1239Z', '2026-11-21T10:00:00.123Z'],
  ])('%s', (text, expected) => expect(new Date(parseTime(text)!).toISOString()).toBe(expected));

  test.each([
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:00',
    '2026-01-01T00:00:00+99:00',
    '2026-01-01T00:00:00+01:60',
    '2026-01-01T00:00:00+1:00',
    '2026-01-01T00:00:00+01:0',
    '2026-01-01T00:00:00+01000',
    '2026-01-01T00:00:00Zz',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00.1234567890Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:61Z',
    '2026-01-01x00:00:00Z',
    '2026-01-01T00.00:00Z',
    '2026/01/01T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '0001-01-01T00:00:00Z',
    '0099-12-31T23:59:59+00:00',
    '02026-01-01T00:00:00Z',
    'now',
    '',
  ])('%s is no time', (text) => expect(parseTime(text)).toBeNull());

  test('seconds, milliseconds and microseconds, as numbers or text', () => {
    for (const value of [1785582123, '1785582123', 1785582123000, '1785582123000', 1785582123000000]) {
      expect(readTime(value)).toBe(1785582123000);
    }
  });

  test.each([
    ...[null, undefined, '', ' ', 0, '0', -1, Number.NaN, {}, true],
    ...['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000000000Z', '0001-01-01 00:00:00+00:00', '1970-01-01T00:00:00Z'],
  ])('%p is no time', (value) => expect(readTime(value)).toBeNull());

  test.each([null, undefined, '', ' ', 0, '0', -1, 1.5, 'soon', {}, true])('%p is no duration', (value) =>
    expect(readSeconds(value)).toBeNull(),
  );

  test('one time is before another by the last digit of a nanosecond', () => {
    const times = ['2026-11-21T10:00:00Z', '2026-11-21T10:00:00.000000001Z', '2026-11-21T11:00:00.00000001+01:00'];
    expect(times.map((one) => times.map((other) => isBefore(one, other)))).toEqual([
      [false, true, true],
      [false, false, true],
      [false, false, false],
    ]);
    expect([isBefore('now', times[0]), isBefore(times[0], undefined), isBefore(1, 2)]).toEqual([false, false, false]);
  });

  test('one time may be before another where the coarser of them does not tell', () => {
    const times = ['2026-11-21T10:00:00Z', '2026-11-21T10:00:00.250Z', '2026-11-21T11:00:00.250000001+01:00'];
    expect(times.map((one) => times.map((other) => mayBeBefore(one, other)))).toEqual(
      Array(3).fill([true, true, true]),
    );
    const [early, late] = ['2026-11-21T10:00:00.250000001Z', '2026-11-21T10:00:00.250000002Z'];
    expect([mayBeBefore(early, late), mayBeBefore(late, late), mayBeBefore(late, early)]).toEqual([true, true, false]);
    const [second, half] = ['2026-11-21T10:00:01Z', '2026-11-21T10:00:00.5Z'];
    expect([mayBeBefore(half, times[1]), mayBeBefore(second, times[1]), mayBeBefore(times[1], second)]).toEqual([
      ...[false, false, true],
    ]);
    expect([mayBeBefore('now', times[0]), mayBeBefore(times[0], null)]).toEqual([false, false]);
  });

  test('a zero time or one of the far future gives way to the next candidate', () => {
    expect(eventTime(NOW, '0001-01-01T00:00:00Z', '2099-01-01T00:00:00Z', null, '2026-11-21T09:00:00Z')).toBe(
      '2026-11-21T09:00:00.000Z',
    );
    expect(eventTime(NOW, undefined)).toBe('2026-11-21T10:00:00.000Z');
    expect(eventTime(NOW, '2026-11-21T10:04:59Z')).toBe('2026-11-21T10:04:59.000Z');
  });
});
