import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createDocuments, type PreparedDocument } from '../../../api/graphql/compiled/documents';
import { createExecutor } from '../../../api/graphql/compiled/executor';
import { DEFAULT_LIMITS } from '../../../api/graphql/limits/limits';
import { startSampleApi } from '../../support/api-process';
import { testDatabase } from '../../support/database';
import { graphqlSample, sampleState } from '../../support/graphql-sample';

setFlagsFromString('--expose_gc');
const gc = runInNewContext('gc') as () => void;
const heap = () => {
  gc();
  gc();
  return process.memoryUsage().heapUsed;
};
const repeat = (n: number, line: (i: number) => string) => Array.from({ length: n }, (_, i) => line(i)).join(' ');

/** Documents that take much memory for their length; `i` makes each another. */
const SHAPES: [string, (i: number) => string][] = [
  ['one field again and again', (i) => `{ thing { leaf { ${repeat(3900, () => 'name')} } } } #${i}`],
  ['few fields', (i) => `{ thing { id leaf { name } } } #${i}`],
  ['aliases', (i) => `{ thing { leaf { ${repeat(30, (k) => `a${k}_${i}: name`)} } } }`],
  ['long aliases', (i) => `{ thing { leaf { ${repeat(30, (k) => `a${k}_${i}${'x'.repeat(1000)}: name`)} } } }`],
  ['objects', (i) => `{ thing { ${repeat(400, () => 'leaf { name }')} } } #${i}`],
  ['a list', (i) => `{ thing(raw: [${repeat(1800, (k) => String(k % 10))} ${i}]) { id } }`],
  [
    'escaped texts',
    (i) => `{ thing(raw: [${repeat(500, (k) => `"\\u0041${k}${i} is long enough to be a copy"`)}]) { id } }`,
  ],
  ['a text', (i) => `{ thing(text: "${i}${'x'.repeat(31_000)}") { id } }`],
  ['a text beyond Latin', (i) => `{ thing(text: "${i}${'漢'.repeat(31_000)}") { id } }`],
  ['comments', (i) => `{ thing { id } ${'#\n'.repeat(900)} } #${i}`],
  [
    'fragments',
    (i) =>
      `{ thing { ${repeat(300, (k) => `...f${k}`)} } } ${repeat(300, (k) => `fragment f${k} on Thing { id }`)} #${i}`,
  ],
];

describe('the estimate of what a document takes is not below what it takes', () => {
  const { schema } = graphqlSample();

  test.each(SHAPES)('%s, parsed and compiled', async (_what, shape) => {
    const documents = createDocuments(schema, DEFAULT_LIMITS, { introspection: false });
    const executor = createExecutor(schema, { keep: (document, grown) => void (document.bytes += grown) });
    const make = (i: number) => {
      // As it comes out of a body: flat, and not part of a longer text.
      const { query } = JSON.parse(JSON.stringify({ query: shape(i) })) as { query: string };
      return documents.prepare(query);
    };
    const run = async (prepared: PreparedDocument) => {
      if (prepared.refusal) throw new Error(prepared.refusal.reasons[0]!.message);
      for (let call = 0; call < 3; call += 1) {
        await executor.runCompiled(prepared, prepared.choose(undefined), {}, sampleState());
      }
    };
    // What the engine itself keeps of a first run is some 100 KB: it must not weigh.
    const count = Math.max(24, Math.ceil((3 * 1024 * 1024) / make(999).bytes));
    for (let i = 0; i < 20; i += 1) await run(make(1_000_000 + i));
    const kept: PreparedDocument[] = [];
    const estimate = () => kept.reduce((sum, { bytes }) => sum + bytes, 0);
    const before = heap();
    for (let i = 0; i < count; i += 1) kept.push(make(i));
    const parsed = heap() - before;
    expect(parsed).toBeLessThan(estimate());
    for (const prepared of kept) await run(prepared);
    const compiled = heap() - before;
    expect(compiled).toBeLessThan(estimate());
  });
});

test('541 large documents and 200 that get compiled, each sent three times, leave a process with a small heap alive', async () => {
  const database = await testDatabase(1);
  const api = await startSampleApi(database.url, {}, { node: ['--max-old-space-size=224'] });
  try {
    const document = (i: number) => `{ serverTime { ${repeat(3900, () => 'time')} } } #${i} ${'#'.repeat(11_500)}`;
    expect(document(0).length).toBeGreaterThan(31_000);
    for (let i = 0; i < 541; i += 1) {
      const answers = await Promise.all([1, 2, 3].map(() => api.gql(document(i), { as: '' })));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    for (let i = 0; i < 200; i += 1) {
      const compiled = `{ serverTime { ${repeat(30, (k) => `a${k}_${i}: time`)} ${repeat(900, () => 'time')} } } #${i} ${'#'.repeat(26_000)}`;
      const answers = await Promise.all([1, 2, 3].map(() => api.gql(compiled, { as: '' })));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    expect((await api.rest('GET', '/v1/server-time')).status).toBe(200);
  } finally {
    await api.stop();
    await database.drop();
  }
}, 300_000);
