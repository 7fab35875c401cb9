import fc from 'fast-check';
import type { ExecutionResult } from 'graphql';
import { createAnswers } from '../api/graphql/answers';
import { createDocuments, type ReadyDocument } from '../api/graphql/documents';
import { createExecutor, type Executor } from '../api/graphql/executor';
import { generateRequest, type GeneratedRequest } from './support/graphql-documents';
import { graphqlSample, sampleState } from './support/graphql-sample';
import { silentLog } from './support/log';

const ROOMY = {
  tokens: 20_000,
  comments: 0,
  depth: 40,
  complexity: 20_000,
  aliases: 500,
  root_fields: 100,
  directives: 500,
  nested_lists: 20,
};

/** The two ways in which the door runs a document, side by side, on operations that remember what reached them. */
function contenders() {
  const { schema, effects } = graphqlSample();
  const documents = createDocuments(schema, ROOMY, { introspection: true });
  return { documents, effects, executor: createExecutor(schema, documents), answers: createAnswers(silentLog) };
}

type Contenders = ReturnType<typeof contenders>;
interface Outcome {
  data: unknown;
  /** Errors by the null that stands for them in the data. */
  errors: Record<string, string[]>;
  effects: string;
}

/** What a caller sees and what happened. */
async function outcome(of: Contenders, run: () => ReturnType<Executor['runCompiled']>): Promise<Outcome | null> {
  of.effects.length = 0;
  const result: ExecutionResult | null = await run();
  if (result === null) return null;
  const { data, errors = [] } = JSON.parse(of.answers.textOf(result)) as {
    data: unknown;
    errors?: { path?: (string | number)[] }[];
  };
  const byNull: Outcome['errors'] = {};
  for (const error of errors) (byNull[nullAbove(data, error.path ?? [])] ??= []).push(JSON.stringify(error));
  return { data, errors: byNull, effects: JSON.stringify(of.effects) };
}

/** The place in the data that is null on account of an error at `path`. */
function nullAbove(data: unknown, path: readonly (string | number)[]): string {
  let at = data;
  const taken: (string | number)[] = [];
  for (const key of path) {
    if (at === null || at === undefined) break;
    taken.push(key);
    at = (at as Record<string | number, unknown>)[key];
  }
  return JSON.stringify(taken);
}

/**
 * Where several errors lie below one null, it is a matter of time and order which of them are told: one must be told by
 * both.
 */
function expectSame(compiled: Outcome, interpreted: Outcome, facts: object): void {
  const told: Outcome['errors'] = {};
  for (const [place, errors] of Object.entries(compiled.errors)) {
    const others = interpreted.errors[place] ?? [];
    told[place] = errors.length + others.length > 2 && errors.some((one) => others.includes(one)) ? others : errors;
  }
  expect({ ...facts, ...compiled, errors: told }).toEqual({ ...facts, ...interpreted });
}

/** Runs one request both ways; whether it was compiled in the end. Throws where the two differ. */
async function compare(of: Contenders, { query, operation_name, variables }: GeneratedRequest): Promise<string> {
  const prepared = of.documents.prepare(query);
  if (prepared.refusal) return 'refused';
  const ready: ReadyDocument = prepared;
  const operation = ready.choose(operation_name);
  const interpreted = await outcome(of, () =>
    of.executor.interpret({ document: ready.document, operation_name, variables, state: sampleState() }),
  );
  let compared = 'interpreted';
  // The third is the first that is compiled, and the fifth sees what those before have left behind.
  for (let call = 1; call <= 5; call += 1) {
    const compiled = await outcome(of, () => of.executor.runCompiled(ready, operation, variables, sampleState()));
    if (compiled === null) continue;
    expectSame(compiled, interpreted!, { query, variables, call });
    compared = 'compiled';
  }
  return compared;
}

test('generated documents answer and do the same, compiled and interpreted', async () => {
  const of = contenders();
  const counts: Record<string, number> = { compiled: 0, interpreted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (gen) => {
      const request = generateRequest((arbitrary) => gen(() => arbitrary));
      counts[await compare(of, request)]! += 1;
    }),
    { numRuns: 1000, endOnFailure: true },
  );
  // Were most refused or never compiled, little would have been compared.
  expect(counts.compiled).toBeGreaterThan(300);
}, 300_000);

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
    expect(await compare(of, { query, operation_name: undefined, variables })).toBe('compiled');
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
      const result = await of.executor.runCompiled(prepared, prepared.choose(undefined), {}, sampleState());
      const raw = (result?.data as { thing: { raw: { list: number[] } } } | undefined)?.thing.raw;
      if (!raw) continue;
      raws.push(JSON.stringify(raw));
      raw.list.push(2);
    }
    expect(raws).toEqual(['{"list":[1]}', '{"list":[1]}', '{"list":[1]}']);
  });
});
