import type { GraphQLSchema } from 'graphql';
import { createAnswers } from '../../api/graphql/answers';
import { createDocuments, type ReadyDocument } from '../../api/graphql/compiled/documents';
import { createExecutor, type Executor } from '../../api/graphql/compiled/executor';
import type { GeneratedRequest } from './graphql-documents';
import { graphqlSample, sampleState, type Odd } from './graphql-sample';

/** Limits that no document of a test meets. */
export const ROOMY = {
  tokens: 20_000,
  comments: 0,
  depth: 40,
  complexity: 20_000,
  aliases: 500,
  root_fields: 100,
  directives: 500,
  nested_lists: 20,
  answer_bytes: 2 ** 40,
};

/**
 * The three executions of a document, on operations that record their inputs: graphql-js, the compiled query
 * (`objects`), and the writer of records (`executor`).
 */
export function contenders(odd?: Odd) {
  const { schema, effects } = graphqlSample([], odd);
  const documents = createDocuments(schema, ROOMY, { introspection: true });
  const objects = createExecutor(unwritten(graphqlSample(effects, odd).schema), documents);
  return {
    documents,
    effects,
    objects,
    executor: createExecutor(schema, documents),
    answers: createAnswers(() => undefined),
  };
}

/** Removes the writers of records from a schema. */
export function unwritten(schema: GraphQLSchema): GraphQLSchema {
  for (const root of [schema.getQueryType()!, schema.getMutationType()!]) {
    for (const field of Object.values(root.getFields())) field.extensions = {};
  }
  return schema;
}

type Contenders = ReturnType<typeof contenders>;
interface Outcome {
  data: unknown;
  /** Errors by the null that stands for them in the data. */
  errors: Record<string, string[]>;
  effects: string;
}
interface Ran extends Outcome {
  text: string;
  /** Whether the text was written from records. */
  written: boolean;
}

/** Result and effects of a run; null when the document is not compiled yet. */
export async function outcome(of: Contenders, run: () => ReturnType<Executor['runCompiled']>): Promise<Ran | null> {
  of.effects.length = 0;
  const result = await run();
  if (result === null) return null;
  const written = typeof result === 'string';
  const text = written ? result : of.answers.textOf(result);
  const { data, errors = [] } = JSON.parse(text) as { data: unknown; errors?: { path?: (string | number)[] }[] };
  const byNull: Outcome['errors'] = {};
  for (const error of errors) (byNull[nullAbove(data, error.path ?? [])] ??= []).push(JSON.stringify(error));
  return { data, errors: byNull, effects: JSON.stringify(of.effects), text, written };
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
 * Where several errors lie below one null, their order depends on time: at least one must be in both results.
 */
function expectSame(compiled: Outcome, interpreted: Outcome, facts: object): void {
  const told: Outcome['errors'] = {};
  for (const [place, errors] of Object.entries(compiled.errors)) {
    const others = interpreted.errors[place] ?? [];
    told[place] = errors.length + others.length > 2 && errors.some((one) => others.includes(one)) ? others : errors;
  }
  expect({ ...facts, ...compiled, errors: told }).toEqual({ ...facts, ...interpreted });
}

/**
 * Runs one request by all executions, five times each, and compares results and effects; returns how the last one was
 * answered: `refused`, `interpreted`, `compiled` or `written`.
 */
export async function compare(of: Contenders, { query, operation_name, variables }: GeneratedRequest): Promise<string> {
  const prepared = of.documents.prepare(query);
  if (prepared.refusal) return 'refused';
  const ready: ReadyDocument = prepared;
  const operation = ready.choose(operation_name);
  const interpreted = await outcome(of, () =>
    of.executor.interpret({ document: ready.document, operation_name, variables, state: sampleState() }),
  );
  const { text, written: _written, ...expected } = interpreted!;
  let compared = 'interpreted';
  // The third is the first that is compiled, and the fifth sees what those before have left behind.
  for (let call = 1; call <= 5; call += 1) {
    for (const executor of [of.objects, of.executor]) {
      const ran = await outcome(of, () => executor.runCompiled(ready, operation, variables, sampleState()));
      if (ran === null) continue;
      const { text: answered, written, ...compiled } = ran;
      expectSame(compiled, expected, { query, variables, call });
      // Members in the same order too, and no error.
      if (written) expect([query, variables, answered]).toEqual([query, variables, text]);
      compared = written ? 'written' : 'compiled';
    }
  }
  return compared;
}
