import {
  execute,
  getArgumentValues,
  getVariableValues,
  GraphQLError,
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { compileQuery, isCompiledQuery, type CompiledQuery } from 'graphql-jit';
import type { RequestState } from '../request-state';
import { withoutArguments, type CompiledContext } from './argument-free-schema';
import type { ChosenOperation, Documents, ReadyDocument } from './documents';
import { plainArguments, plainVariables } from './plain-values';
import { conditionsOf, specialise } from './specialise';
import { compileText, type TextWriter } from './text-writer';

export interface ExecutionRequest {
  document: DocumentNode;
  operation_name: string | undefined;
  variables: Record<string, unknown> | undefined;
  state: RequestState;
}

export interface Executor {
  /** Executes with graphql-js. */
  interpret(request: ExecutionRequest): Promise<ExecutionResult> | ExecutionResult;
  /**
   * Executes with the function compiled for a document that keeps coming. Null, and nothing has run, when graphql-js is
   * to do it: the document has not come often enough or cannot be compiled, or the variables do not fit. Counts this
   * coming. The answer is the text of the body where what the operations answered is exactly what their types promise.
   */
  runCompiled(
    document: ReadyDocument,
    operation: ChosenOperation,
    variables: Record<string, unknown>,
    state: RequestState,
  ): Promise<string | ExecutionResult> | ExecutionResult | null;
}

/** Compiling costs milliseconds: a document must have come this often before it is worth it. */
const COMPILE_AFTER = 3;
/** Larger operations are interpreted: compiling one would hold up all other requests, and running it is what costs. */
const MAX_COMPLEXITY = 2000;
/** Larger documents are interpreted, so that no few of them fill the cache. */
const MAX_DOCUMENT_BYTES = 1024 * 1024;
/** Functions of one document: one for each operation and each way in which its `@skip` and `@include` turn out. */
const MAX_VARIANTS = 8;
/**
 * Measured: a function takes up to 12 kB with its helpers, and its selections up to twice what they take in the
 * document.
 */
const FUNCTION_BYTES = 12_000;
/**
 * Measured: beside that a function takes up to 1.1 bytes for each character of its text, and the text itself is kept
 * too.
 */
const BYTES_PER_CHARACTER = 2;

/** Measured: up to 7.5 bytes for each character of a writer's function, and some for what it holds. */
const WRITER_BYTES = 4000;
const WRITER_BYTES_PER_CHARACTER = 8;

interface CompiledRoot {
  key: string;
  node: FieldNode;
  plain: ReturnType<typeof plainArguments>;
}
interface Compiled {
  query: CompiledQuery['query'];
  roots: readonly CompiledRoot[];
  /** Null where answers cannot be written from records. */
  writer: TextWriter | null;
}
interface Variant {
  uses: number;
  /** Null before it was compiled, false when it cannot be. */
  compiled: Compiled | false | null;
}
interface Plan {
  conditions: readonly string[];
  variants: Map<string, Variant>;
  /** Of operations that were compiled, by their index. */
  variables: Map<number, ReturnType<typeof plainVariables>>;
}

/** Executes documents: with graphql-js at first, with a function compiled for the document once it keeps coming. */
export function createExecutor(schema: GraphQLSchema, documents: Pick<Documents, 'keep'>): Executor {
  const selections = withoutArguments(schema);
  const rootTypes = { query: schema.getQueryType(), mutation: schema.getMutationType(), subscription: null };
  const plans = new WeakMap<ReadyDocument, Plan>();

  function compile(
    document: ReadyDocument,
    operation: ChosenOperation,
    variables: Record<string, unknown>,
  ): Variant['compiled'] {
    if (operation.complexity > MAX_COMPLEXITY || document.bytes > MAX_DOCUMENT_BYTES) return false;
    const specialised = specialise(document.document, operation.node, variables);
    if (!specialised) return false;
    const compiled = compileQuery(selections, specialised.document, undefined, { debug: true } as object);
    if (!isCompiledQuery(compiled)) return false;
    const text = (compiled as unknown as Record<string, unknown>)[FUNCTION_TEXT];
    const writer = compileText(schema, specialised);
    documents.keep(
      document,
      FUNCTION_BYTES +
        2 * document.node_bytes +
        String(text).length * BYTES_PER_CHARACTER +
        (writer === null ? 0 : WRITER_BYTES + writer.length * WRITER_BYTES_PER_CHARACTER),
    );
    const fields = rootTypes[operation.node.operation]!.getFields();
    const roots = [...specialised.roots].map(([key, node]) => {
      return { key, node, plain: plainArguments(fields[node.name.value]!, node) };
    });
    return { query: compiled.query, roots, writer };
  }

  /** Null when graphql-js is to refuse one of them. */
  function variablesOf(
    { node, index }: ChosenOperation,
    { variables }: Plan,
    given: Record<string, unknown>,
  ): Record<string, unknown> | null {
    const plain = variables.get(index)?.(given);
    if (plain) return plain;
    return getVariableValues(schema, node.variableDefinitions ?? [], given, { maxErrors: 1 }).coerced ?? null;
  }

  /** Null when graphql-js is to refuse one of them. */
  function argumentsOf(
    { operation }: OperationDefinitionNode,
    roots: readonly CompiledRoot[],
    variables: Record<string, unknown>,
  ): CompiledContext['args'] | null {
    const fields = rootTypes[operation]!.getFields();
    const args = new Map<string, Record<string, unknown>>();
    try {
      for (const { key, node, plain } of roots) {
        args.set(key, plain(variables) ?? getArgumentValues(fields[node.name.value]!, node, variables));
      }
    } catch (error) {
      if (error instanceof GraphQLError) return null;
      throw error;
    }
    return args;
  }

  return {
    interpret: (request) =>
      execute({
        schema,
        document: request.document,
        operationName: request.operation_name,
        variableValues: request.variables,
        contextValue: request.state,
      }) as Promise<ExecutionResult> | ExecutionResult,
    runCompiled(document, operation, given, state) {
      let plan = plans.get(document);
      if (!plan) {
        plan = { conditions: conditionsOf(document.document), variants: new Map(), variables: new Map() };
        plans.set(document, plan);
      }
      const coerced = variablesOf(operation, plan, given);
      if (coerced === null) return null;
      const key = variantKey(operation, plan.conditions, coerced);
      if (key === null) return null;
      let variant = plan.variants.get(key);
      if (!variant) {
        if (plan.variants.size >= MAX_VARIANTS) return null;
        plan.variants.set(key, (variant = { uses: 0, compiled: null }));
      }
      variant.uses += 1;
      if (variant.uses === COMPILE_AFTER) {
        variant.compiled = compile(document, operation, coerced);
        if (variant.compiled) plan.variables.set(operation.index, plainVariables(schema, operation.node));
      }
      if (!variant.compiled) return null;
      const args = argumentsOf(operation.node, variant.compiled.roots, coerced);
      if (!args) return null;
      const { query, writer } = variant.compiled;
      return writer === null ? queried(query, { state, args }) : written(writer, query, { state, args });
    },
  };
}

function queried(query: CompiledQuery['query'], context: CompiledContext): Promise<ExecutionResult> | ExecutionResult {
  const result = query(undefined, context, {});
  return result instanceof Promise ? result.then(withOwnErrors) : withOwnErrors(result);
}

type Outcome = { failed: false; value: unknown } | { failed: true; error: unknown };

/** Runs the operations, and has their answers written; what is not as promised is left to the compiled query. */
async function written(
  { roots, write }: TextWriter,
  query: CompiledQuery['query'],
  { state, args }: CompiledContext,
): Promise<string | ExecutionResult> {
  const outcomes: Outcome[] = [];
  /** Places of the roots, in the order in which their operations ended. */
  const ended: number[] = [];
  const running = roots.map(({ key, node, answer }, index) => {
    const end = (outcome: Outcome) => {
      outcomes[index] = outcome;
      ended.push(index);
    };
    return answer(args.get(key)!, state, node).then(
      (value) => end({ failed: false, value }),
      (error: unknown) => end({ failed: true, error }),
    );
  });
  await (running.length === 1 ? running[0] : Promise.all(running));
  const text = outcomes.every(isDone) ? write(outcomes) : null;
  if (text !== null) return text;
  // No operation is run a second time: a command has done its work. Of several errors below one null the first is told,
  // so the answers come in the order in which they came.
  const answered = new Map<string, Promise<unknown>>();
  let before: Promise<unknown> = Promise.resolve();
  for (const index of ended) {
    const { key, show } = roots[index]!;
    const outcome = outcomes[index]!;
    const shown = before.then(() => {
      if (outcome.failed) throw outcome.error;
      return show(outcome.value, state.context);
    });
    answered.set(key, shown);
    before = shown.catch(() => undefined);
  }
  return queried(query, { state, args, answered });
}

const isDone = (outcome: Outcome): outcome is Outcome & { failed: false } => !outcome.failed;

/** Where the compiler leaves the text of its function, of which only the length is wanted. */
const FUNCTION_TEXT = '__DO_NOT_USE_THIS_OR_YOU_WILL_BE_FIRED_compilation';

/** Tells apart what is compiled apart; null when a condition has no value, which graphql-js refuses. */
function variantKey(
  operation: ChosenOperation,
  conditions: readonly string[],
  variables: Record<string, unknown>,
): string | null {
  let key = String(operation.index);
  if (conditions.length === 0) return key;
  for (const { variable } of operation.node.variableDefinitions ?? []) {
    if (!conditions.includes(variable.name.value)) continue;
    const value = variables[variable.name.value];
    if (typeof value !== 'boolean') return null;
    key += value ? ' 1' : ' 0';
  }
  return key;
}

/** The compiler makes errors of a class of its own; the rest of the house knows graphql-js's. */
function withOwnErrors(result: ExecutionResult): ExecutionResult {
  if (!result.errors || result.errors.length === 0) return result;
  return { ...result, errors: result.errors.map(ownError) };
}

function ownError(error: GraphQLError): GraphQLError {
  const { message, path, originalError, extensions, locations } = error;
  const own = new GraphQLError(message, { path, originalError, extensions });
  // The compiler has written the places of the field into its function; there are no nodes to find them by.
  return Object.assign(own, { locations });
}
