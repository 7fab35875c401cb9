import { createDocuments } from '../../../api/graphql/compiled/documents';
import { createExecutor } from '../../../api/graphql/compiled/executor';
import { DEFAULT_LIMITS } from '../../../api/graphql/limits/limits';
import { graphqlSample, sampleState } from '../../support/graphql-sample';

/** CPU time of what the door does with a document before it runs, at a size and at four times that. */
const { schema } = graphqlSample();
const repeat = (n: number, line: (i: number) => string) => Array.from({ length: n }, (_, i) => line(i)).join(' ');

function milliseconds(text: string): number {
  const documents = createDocuments(schema, DEFAULT_LIMITS, { introspection: false });
  const executor = createExecutor(schema, documents);
  const before = process.cpuUsage();
  const prepared = documents.prepare(text);
  // The third coming is the one that compiles.
  for (let call = 0; prepared.refusal === null && call < 3; call += 1) {
    void executor.runCompiled(prepared, prepared.choose(undefined), {}, sampleState());
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
const LIMIT = 8;
/** Rounds that are measured in any case, and at most: more only while the ratio is not clearly below its limit. */
const ROUNDS = { least: 4, most: 20 };
/** What takes less than this is not told from the noise of the machine. */
const NOISE_MS = 2;

/**
 * Four times a size must cost less than eight times as much: linear is 4, quadratic is 16. The best of the rounds,
 * taken in turn; the small one is the mean of four in a row, so that both fill memory equally and collecting it costs
 * both the same.
 */
function expectLinear(shape: (size: number) => string, small: number): void {
  const [one, four] = [shape(small), shape(4 * small)];
  milliseconds(four);
  const best = { one: Infinity, four: Infinity };
  const ratio = () => best.four / Math.max(best.one, NOISE_MS);
  for (let round = 0; round < ROUNDS.most; round += 1) {
    if (round >= ROUNDS.least && ratio() < 0.75 * LIMIT) break;
    const ones = [one, one, one, one].reduce((sum, text) => sum + milliseconds(text), 0);
    best.one = Math.min(best.one, ones / 4);
    best.four = Math.min(best.four, milliseconds(four));
  }
  expect(ratio()).toBeLessThan(LIMIT);
}

describe('tokens, up to the 4,000 that are parsed', () => {
  test.each<[string, number, (n: number) => string]>([
    ['one field again and again', 900, (n) => `{ thing { leaf { ${repeat(n, () => 'name')} } } }`],
    ['one object again and again', 240, (n) => `{ thing { ${repeat(n, () => 'leaf { name }')} } }`],
    [
      'objects in objects',
      60,
      (n) => `{ ${repeat(5, () => `thing { ${repeat(n / 5, () => 'leaf { name size }')} }`)} }`,
    ],
    ['fragments beside each other', 100, (n) => spreads(n, (i) => `fragment f${i} on Thing { id }`)],
    ['fragments with objects', 80, (n) => spreads(n, (i) => `fragment f${i} on Thing { leaf { name } }`)],
    ['fragments in a row', 120, (n) => chain(n)],
    ['fragments that are spread twice each', 100, (n) => chain(n, 2)],
    ['inline fragments', 200, (n) => `{ thing { ${repeat(n, () => '... { id }')} } }`],
    ['inline fragments in each other', 240, (n) => `{ thing ${'{ ... '.repeat(n)} { id } ${'}'.repeat(n)} }`],
    ['unknown fields', 900, (n) => `{ thing { ${repeat(n, (i) => `x${i}`)} } }`],
    ['aliases', 320, (n) => `{ thing { ${repeat(n, (i) => `a${i}: id`)} } }`],
    ['directives', 150, (n) => `{ thing { ${repeat(n, () => 'id @skip(if: true)')} } }`],
    [
      'variables',
      150,
      (n) => `query(${repeat(n, (i) => `$v${i}: JSON`)}) { thing(raw: [${repeat(n, (i) => `$v${i}`)}]) { id } }`,
    ],
    ['operations', 190, (n) => repeat(n, (i) => `query q${i} { __typename }`)],
    ['a list', 900, (n) => `{ thing(raw: [${repeat(n, () => '1')}]) { id } }`],
    ['an object', 300, (n) => `{ thing(raw: {${repeat(n, (i) => `k${i}: 1`)}}) { id } }`],
    [
      'objects as arguments of one field',
      30,
      (n) => `{ ${repeat(5, () => `thing(raw: {${repeat(n, (i) => `k${i}: 1`)}}) { id }`)} }`,
    ],
    ['lists in lists', 450, (n) => `{ thing(raw: ${'['.repeat(n)}${']'.repeat(n)}) { id } }`],
    ['fields in fields', 900, (n) => '{ thing '.repeat(n)],
  ])('%s', (_what, small, shape) => expectLinear(shape, small));

  const spreads = (n: number, fragment: (i: number) => string) =>
    `{ thing { ${repeat(n, (i) => `...f${i}`)} } } ${repeat(n, fragment)}`;
  const chain = (n: number, times = 1) =>
    `{ thing { ...f0 } } ${repeat(n, (i) => `fragment f${i} on Thing { ${repeat(times, () => `...f${i + 1}`)} }`)} fragment f${n} on Thing { id }`;
});

describe('characters, up to the megabyte of a body', () => {
  test.each<[string, (n: number) => string]>([
    ['a text', (n) => `{ thing(text: "${'x'.repeat(n)}") { id } }`],
    ['a text beyond Latin', (n) => `{ thing(text: "${'漢'.repeat(n / 3)}") { id } }`],
    ['a text of escapes', (n) => `{ thing(text: "${'\\u0041'.repeat(n / 6)}") { id } }`],
    ['a text of lines', (n) => `{ thing(text: """${'a\n'.repeat(n / 2)}""") { id } }`],
    ['a text of indented lines', (n) => `{ thing(text: """${' \n'.repeat(n / 2)}""") { id } }`],
    ['a text without an end', (n) => `{ thing(text: "${'x'.repeat(n)}`],
    ['comments', (n) => `{ thing { id ${'#\n'.repeat(n / 2)} } }`],
    ['commas', (n) => `{ thing { id ${','.repeat(n)} } }`],
    ['lines before twenty errors', (n) => `{ ${'\n'.repeat(n)} thing { ${repeat(20, (i) => `x${i}`)} } }`],
    ['a field name', (n) => `{ ${'n'.repeat(n)} }`],
    ['a variable name', (n) => `query($${'n'.repeat(n)}: Int) { thing(count: $${'n'.repeat(n)}) { id } }`],
    ['names of twenty unknown fields', (n) => `{ ${repeat(20, (i) => `x${i}${'n'.repeat(n / 20)}`)} }`],
    ['a number', (n) => `{ thing(count: ${'1'.repeat(n)}) { id } }`],
    ['braces', (n) => '{'.repeat(n)],
  ])('%s', (_what, shape) => expectLinear(shape, 256 * 1024 - 64));
});
