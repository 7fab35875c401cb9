import fc from 'fast-check';
import { RawJson, stringify, withRawJson } from '../../lib/json/raw-json';

/** What a value is with each raw text parsed. */
const parsed = (value: unknown): unknown => JSON.parse(stringify(value));
const raw = fc.json().map((text) => new RawJson(text));
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.string(),
    fc.integer(),
    raw,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(fc.string(), tie('tree'), { maxKeys: 4 }),
  ),
}));

test('texts are sent as they came, wherever they stand', () => {
  const plain = (value: unknown): unknown => {
    if (value instanceof RawJson) return JSON.parse(value.text);
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
  };
  fc.assert(fc.property(tree, (value) => expect(parsed(value)).toEqual(JSON.parse(JSON.stringify(plain(value))))));
  expect(stringify([new RawJson('{"n": 1.0}'), 'x', new RawJson('2e0')])).toBe('[{"n": 1.0},"x",2e0]');
});

test.each<[string, (texts: [string, string]) => string, string]>([
  ['in another order', ([a, b]) => `[${b},${a}]`, '[2.0,1.0]'],
  ['twice', ([a, b]) => `[${a},${b},${a}]`, '[1.0,2.0,1.0]'],
  ['twice in a row', ([a, b]) => `[${a},${a},${b}]`, '[1.0,1.0,2.0]'],
  ['and leave one out', ([, b]) => `[${b}]`, '[2.0]'],
])('a serialiser may place them %s', (_what, place, expected) => {
  const serialise = () => {
    const [one, two] = ['1.0', '2.0'].map((text) => JSON.stringify(new RawJson(text)));
    return place([one!, two!]);
  };
  expect(withRawJson(serialise)).toBe(expected);
});
