import fc from 'fast-check';
import type { ExecutionResult } from 'graphql';
import { AnswerTooLarge, holdText } from '../../api/http/answers/answer-size';
import { createAnswers } from '../../api/graphql/answers';
import { createDocuments, type ReadyDocument } from '../../api/graphql/compiled/documents';
import { createExecutor, type Executor } from '../../api/graphql/compiled/executor';
import { RawJson } from '../../lib/json/raw-json';
import { compare, contenders, outcome, ROOMY, unwritten } from '../support/graphql-contenders';
import { generateRequest, type GeneratedRequest } from '../support/graphql-documents';
import { drawing, graphqlSample, sampleState, thing } from '../support/graphql-sample';

describe('an answer as large as it may be is given, and one of a byte more is refused', () => {
  /** How many of the three ways answered within the bound, by their call. */
  async function answered({ query, operation_name, variables }: GeneratedRequest, answer_bytes: number) {
    const { schema } = graphqlSample();
    const documents = createDocuments(schema, ROOMY, { introspection: true });
    const ready = documents.prepare(query) as ReadyDocument;
    const operation = ready.choose(operation_name);
    const executors = [schema, unwritten(graphqlSample().schema)].map((one) => {
      return createExecutor(one, documents, { answer_bytes });
    });
    const answers = createAnswers(() => undefined);
    const texts = new Set<string>();
    const outcomes: string[] = [];
    const run = async (start: () => ReturnType<Executor['runCompiled']>) => {
      try {
        const result = await start();
        if (result === null) return;
        const text = holdText(typeof result === 'string' ? result : answers.textOf(result), answer_bytes);
        texts.add(text);
        outcomes.push(text.includes('"errors":[') ? 'errors' : 'answered');
      } catch (error) {
        expect(error).toBeInstanceOf(AnswerTooLarge);
        outcomes.push('too large');
      }
    };
    const { document } = ready;
    await run(() => executors[0]!.interpret({ document, operation_name, variables, state: sampleState() }));
    for (let call = 1; call <= 4; call += 1) {
      for (const executor of executors) {
        await run(() => executor.runCompiled(ready, operation, variables, sampleState()));
      }
    }
    return { texts: [...texts], outcomes };
  }

  /** Ways in which the document ran; none where an answer has errors, whose texts may differ. */
  async function compareSizes(request: GeneratedRequest): Promise<number> {
    const { schema } = graphqlSample();
    if (createDocuments(schema, ROOMY, { introspection: true }).prepare(request.query).refusal) return 0;
    const free = await answered(request, 2 ** 40);
    if (free.outcomes.includes('errors') || free.texts.length > 1) return 0;
    const bytes = Buffer.byteLength(free.texts[0]!);
    expect(await answered(request, bytes)).toEqual(free);
    const refused = await answered(request, bytes - 1);
    expect(refused).toEqual({ texts: [], outcomes: free.outcomes.map(() => 'too large') });
    return free.outcomes.length;
  }

  test.each([
    '{ things { items { id text raw leaves { name } holes { name } } nextCursor total } }',
    '{ a: things { items { a: raw b: raw c: raw } } b: things { items { leaves { a: name b: name } } } }',
    '{ drawings { drawingId moods grid shape { ... on Round { label } ... on Square { side } } } }',
    '{ thing(raw: {a: "\\u0001 \\"ä€😀\\"", b: [1, 2.5, true, null, {c: "d"}]}) { raw text mood leaf { name size } } }',
    'mutation { makeThing(input: {count: 1, text: "ä\\n€"}) { text raw } }',
  ])('%s', async (query) => {
    expect(await compareSizes({ query, operation_name: undefined, variables: {} })).toBeGreaterThanOrEqual(5);
  });

  test('of generated documents', async () => {
    let ways = 0;
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (gen) => {
        ways += await compareSizes(generateRequest((arbitrary) => gen(() => arbitrary)));
      }),
      { numRuns: 60, endOnFailure: true },
    );
    expect(ways).toBeGreaterThan(50);
  }, 120_000);
});

describe('by hand', () => {
  test.each<[string, string, Record<string, unknown>]>([
    [
      'a variable in a literal of the JSON scalar',
      'query($n: String!) { thing(raw: {user: {name: $n}}) { raw } }',
      { n: 'ada' },
    ],
    ['in a list of it', 'query($n: JSON) { thing(raw: [1, $n, [$n]]) { raw } }', { n: { deep: [true] } }],
    [
      'in a member of an input',
      'query($n: JSON) { perhaps(filter: {raw: {a: $n}, inner: {label: "x", more: [$n]}}) { raw } }',
      { n: 5 },
    ],
    ['one that was not given', 'query($toString: JSON) { thing(raw: {a: $toString}) { raw } }', {}],
    [
      'conditions',
      'query($a: Boolean!) { thing { ...f @skip(if: $a) leaf { ...g } } } fragment f on Thing { leaf { size } } fragment g on Leaf { name @include(if: $a) }',
      { a: true },
    ],
    [
      'a condition shared by two fragments',
      'query($a: Boolean!) { one: thing { ...f @include(if: $a) } two: thing { ...f } } fragment f on Thing { id }',
      { a: false },
    ],
    ['nothing left', 'query($a: Boolean!) { thing { leaf @skip(if: $a) { name } } }', { a: true }],
  ])('%s', async (_what, query, variables) => {
    const of = contenders();
    expect(await compare(of, { query, operation_name: undefined, variables })).toBe('written');
  });

  test('no mutation runs after one that failed', async () => {
    const of = contenders();
    const query =
      'mutation { a: makeThing(input: {count: 1, text: "fail"}) { id } b: makeThing(input: {count: 2}) { id } }';
    expect(await compare(of, { query, operation_name: undefined, variables: {} })).toBe('interpreted');
    const { document } = of.documents.prepare(query) as ReadyDocument;
    const request = { document, operation_name: undefined, variables: {}, state: sampleState() };
    await outcome(of, () => of.executor.interpret(request));
    expect(of.effects.map(([, input]) => (input as { count: number }).count)).toEqual([1]);
  });

  test('what an operation does to its input is not seen by the next call', async () => {
    const of = contenders();
    const prepared = of.documents.prepare('{ thing(raw: {list: [1]}) { raw } }') as ReadyDocument;
    const raws: unknown[] = [];
    for (let call = 0; call < 5; call += 1) {
      const result = await of.objects.runCompiled(prepared, prepared.choose(undefined), {}, sampleState());
      const raw = ((result as ExecutionResult | null)?.data as { thing: { raw: { list: number[] } } } | undefined)
        ?.thing.raw;
      if (!raw) continue;
      raws.push(JSON.stringify(raw));
      raw.list.push(2);
    }
    expect(raws).toEqual(['{"list":[1]}', '{"list":[1]}', '{"list":[1]}']);
  });
});

describe('records that do not fit', () => {
  /** Values that are not what some type promises, or are told from it only by a close look; made anew for each run. */
  const PLAIN: readonly (() => unknown)[] = [
    ...[
      null,
      '',
      'x',
      'bad',
      'very_good',
      '"\\\n\u2028\0',
      '\ud800',
      'é漢😀',
      `${'long '.repeat(20)}"`,
      'a'.repeat(500),
    ],
    ...[0, -0, 1.5, 1e21, NaN, Infinity, 7, 2 ** 31, -(2 ** 31), 2 ** 53, 2 ** 40, 5n, true, false, Symbol('x')],
  ].map((value) => () => value);
  const MADE: readonly (() => unknown)[] = [
    () => undefined,
    () => [],
    () => [null],
    () => [[1.5]],
    () => ({}),
    () => ({ kind: 'round' }),
    () => ({ kind: 'oval' }),
    () => ({ name: 'a', size: 1 }),
    () => ({ deep: [{ raw: new RawJson('{"n": 1.0}') }, undefined, -0] }),
    () => new RawJson('{"n": 1.0}'),
    () => new Date(0),
    () => new Set(['x']),
    () => new String('x'),
    () => () => 'x',
    () => Promise.resolve('x'),
    () => ({ toJSON: () => 'x' }),
    () => ({ toJSON: () => undefined }),
    () => ({ then: 1 }),
    () => ({ valueOf: () => 7 }),
    () => Object.create(null) as unknown,
    () =>
      new (class {
        get name() {
          return 'got';
        }
      })(),
  ];
  const MISFITS = [...PLAIN, ...MADE];
  const DOCUMENTS = [
    `{ odd { thing { id text mood raw leaf { name size } maybe { name } leaves { size name } holes { name } }
      drawing { ...d } } } fragment d on Drawing { drawingId drawnAt bytes ratio live moods grid
      shape { __typename ... on Round { radius label } ... on Square { side inside { name } } } }`,
    '{ a: odd { __typename drawing { live shape { kind: __typename } } } b: odd { thing { raw leaves { name } } drawing { shape { ... on Square { side } } } } }',
    '{ odds { total page pages partial items { moods bytes shape { ... on Round { kind radius } } } } }',
  ];

  /** Puts a value at a place that `pick` finds, and says which. */
  function spoil(record: unknown, pick: (below: number) => number, misfit: () => unknown): unknown {
    const names = isPlain(record) ? Object.keys(record) : [];
    if (names.length === 0 || pick(12) === 0) return misfit();
    const name = names[pick(names.length)]!;
    const holder = record as Record<string, unknown>;
    const value = spoil(holder[name], pick, misfit);
    // Members may be missing; a list of ours has no holes.
    holder[name] = value === undefined && Array.isArray(record) ? null : value;
    return record;
  }
  /** What has a `then` is left as it is: a function there would make it a promise that never ends. */
  const isPlain = (value: unknown): value is object =>
    Array.isArray(value) ||
    (typeof value === 'object' &&
      value !== null &&
      !('then' in value) &&
      Object.getPrototypeOf(value) === Object.prototype);

  test('answer as the compiled query answers, and what is written is what graphql-js says', async () => {
    const choices = fc.array(fc.nat(1000), { minLength: 1, maxLength: 12 });
    const spoilt = fc.array(fc.tuple(choices, fc.nat(MISFITS.length - 1)), { maxLength: 2 });
    let make: <T>(record: T) => T = (record) => record;
    const of = contenders({
      one: () => make({ thing: thing({ mood: 'bad' }), drawing: drawing() }),
      page: () => make({ items: [drawing(), drawing()], total: 2 }),
    });
    const prepared = DOCUMENTS.map((text) => of.documents.prepare(text) as ReadyDocument);
    for (const one of prepared) {
      for (let call = 0; call < 2; call += 1) {
        await of.executor.runCompiled(one, one.choose(undefined), {}, sampleState());
        await of.objects.runCompiled(one, one.choose(undefined), {}, sampleState());
      }
    }
    const told = async (run: () => ReturnType<Executor['runCompiled']>) => {
      try {
        const result = await run();
        const written = typeof result === 'string';
        return { written, text: written ? result : of.answers.textOf(result!) };
      } catch (error) {
        return { written: false, text: String(error) };
      }
    };
    const counts = { written: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(fc.nat(DOCUMENTS.length - 1), spoilt, async (which, places) => {
        make = (record) =>
          places.reduce<unknown>((whole, [path, misfit]) => {
            let at = 0;
            const pick = (below: number) => path[(at += 1) % path.length]! % below;
            return spoil(whole, pick, MISFITS[misfit]!);
          }, record) as typeof record;
        const one = prepared[which]!;
        const run = (executor: Executor) => () => executor.runCompiled(one, one.choose(undefined), {}, sampleState());
        const text = await told(run(of.executor));
        const other = text.written
          ? await told(() =>
              of.executor.interpret({
                document: one.document,
                operation_name: undefined,
                variables: {},
                state: sampleState(),
              }),
            )
          : await told(run(of.objects));
        counts[text.written ? 'written' : 'refused'] += 1;
        expect([which, text.text]).toEqual([which, other.text]);
      }),
      { numRuns: 2000 },
    );
    expect(Math.min(counts.written, counts.refused)).toBeGreaterThan(200);
  }, 120_000);
});
