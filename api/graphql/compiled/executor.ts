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
import type { RequestState } from '../../http/requests/request-state';
import { holdResult } from '../limits/answer-size';
import { withoutArguments, type CompiledContext } from './argument-free-schema';
import type { ChosenOperation, Documents, ReadyDocument } from './documents';
import { DEFAULT_LIMITS, type GraphqlLimits } from '../limits/limits';
import { plainArguments, plainVariables } from './plain-values';
import { conditionsOf, specialise } from './specialise';
import { compileText, type TextWriter } from './text-writer';

export interface ExecutionRequest {
  document: DocumentNode;
  operation_name: string | undefined;
  variables: Record<string, unknown> | undefined;
  state: RequestState;
}

/** @throws AnswerTooLarge when the text of the answer would exceed its limit */
export interface Executor {
  /** Executes with graphql-js. */
  interpret(request: ExecutionRequest): Promise<ExecutionResult> | ExecutionResult;
  /**
   * Executes with the function compiled for a frequent document. Null, without running anything, when graphql-js must
   * execute: the document is not frequent or cannot be compiled, or the variables do not fit. Counts the request. The
   * answer is the text of the body when the operations' results match their types exactly.
   */
  runCompiled(
    document: ReadyDocument,
    operation: ChosenOperation,
    variables: Record<string, unknown>,
    state: RequestState,
  ): Promise<string | ExecutionResult> | ExecutionResult | null;
}

/** Requests of a document before it is compiled, because compiling costs milliseconds. */
const COMPILE_AFTER = 3;
/** Larger operations are interpreted: compiling one would block all other requests, and its execution costs most. */
const MAX_COMPLEXITY = 2000;
/** Larger documents are interpreted, so that a few of them cannot fill the cache. */
const MAX_DOCUMENT_BYTES = 1024 * 1024;
/** Most functions of a document: one for each operation and each outcome of its `@skip` and `@include`. */
const MAX_VARIANTS = 8;
/**
 * Measured: a function takes up to 12 kB with its helpers, and its selections up to twice their size in the document.
 */
const FUNCTION_BYTES = 12_000;
/**
 * Measured: in addition a function takes up to 1.1 bytes for each character of its text, and the text itself is kept
 * too.
 */
const BYTES_PER_CHARACTER = 2;

/** Measured: up to 7.5 bytes for each character of a writer's function, and some for the values that it holds. */
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
  /** Null when answers cannot be written from records. */
  writer: TextWriter | null;
}
interface Variant {
  uses: number;
  /** Null before the compilation, false when it failed. */
  compiled: Compiled | false | null;
}
interface Plan {
  conditions: readonly string[];
  variants: Map<string, Variant>;
  /** Readers of the variables of compiled operations, by their index. */
  variables: Map<number, ReturnType<typeof plainVariables>>;
}

/** Executes documents: with graphql-js at first, with a compiled function once the document is frequent. */
export function createExecutor(
  schema: GraphQLSchema,
  documents: Pick<Documents, 'keep'>,
  { answer_bytes }: Pick<GraphqlLimits, 'answer_bytes'> = DEFAULT_LIMITS,
): Executor {
  const held = (result: ExecutionResult) => holdResult(result, answer_bytes);
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
    const writer = compileText(schema, specialised, answer_bytes);
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
    raw_variables: Record<string, unknown>,
  ): Record<string, unknown> | null {
    const plain = variables.get(index)?.(raw_variables);
    if (plain) return plain;
    return getVariableValues(schema, node.variableDefinitions ?? [], raw_variables, { maxErrors: 1 }).coerced ?? null;
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
    interpret(request) {
      const result = execute({
        schema,
        document: request.document,
        operationName: request.operation_name,
        variableValues: request.variables,
        contextValue: request.state,
      }) as Promise<ExecutionResult> | ExecutionResult;
      return result instanceof Promise ? result.then(held) : held(result);
    },
    runCompiled(document, operation, raw_variables, state) {
      let plan = plans.get(document);
      if (!plan) {
        plan = { conditions: conditionsOf(document.document), variants: new Map(), variables: new Map() };
        plans.set(document, plan);
      }
      const coerced = variablesOf(operation, plan, raw_variables);
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
      const context = { state, args };
      const result = writer === null ? queried(query, context) : written(writer, query, context);
      const checked = (one: string | ExecutionResult) => (typeof one === 'string' ? one : held(one));
      return result instanceof Promise ? result.then(checked) : held(result);
    },
  };
}

function queried(query: CompiledQuery['query'], context: CompiledContext): Promise<ExecutionResult> | ExecutionResult {
  const result = query(undefined, context, {});
  return result instanceof Promise ? result.then(withOwnErrors) : withOwnErrors(result);
}

type Outcome = { failed: false; value: unknown } | { failed: true; error: unknown };

/** Runs the operations and writes their answer; leaves results that do not match their types to the compiled query. */
async function written(
  { roots, write }: TextWriter,
  query: CompiledQuery['query'],
  { state, args }: CompiledContext,
): Promise<string | ExecutionResult> {
  const outcomes: Outcome[] = [];
  /** Indexes of the roots, in the order in which their operations ended. */
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
  // Passes the results on instead of running an operation again, because a command has had its effect. Of several
  // errors below one null the first is reported, so that the results resolve in their original order.
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

/** Member in which the compiler leaves the text of its function; only the length is used. */
const FUNCTION_TEXT = '__DO_NOT_USE_THIS_OR_YOU_WILL_BE_FIRED_compilation';

/** Key of a compiled variant; null when a condition has no value, which graphql-js refuses. */
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

/** Converts the compiler's errors, which are of a class of its own, to those of graphql-js. */
function withOwnErrors(result: ExecutionResult): ExecutionResult {
  if (!result.errors || result.errors.length === 0) return result;
  return { ...result, errors: result.errors.map(ownError) };
}

function ownError(error: GraphQLError): GraphQLError {
  const { message, path, originalError, extensions, locations } = error;
  const own = new GraphQLError(message, { path, originalError, extensions });
  // The compiler's function contains the locations of the field; its errors have no nodes to derive them from.
  return Object.assign(own, { locations });
}
