import type { FieldNode, FragmentDefinitionNode, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import { AnswerTooLarge } from '../../http/answers/answer-size';
import { rootSourceOf, type RootSource } from '../sources';
import type { Specialised } from './specialise';
import { TextCompiler } from './text-compiler';
import { TOO_LONG, VALUES } from './text-values';

/** A root field as selected by an operation. */
export interface WrittenRoot extends RootSource {
  key: string;
  node: FieldNode;
}

/** Writes the answer of an operation from the results of its root fields. */
export interface TextWriter {
  readonly roots: readonly WrittenRoot[];
  /**
   * The whole body; null, without any effect, when a result does not match its type exactly, so that an executor must
   * answer. `answers` are the results of the roots, in their order.
   * @throws AnswerTooLarge as soon as a list has more characters than the answer may have bytes
   */
  write(answers: readonly { value: unknown }[]): string | null;
  /** Characters of the compiled function. */
  readonly length: number;
}

/**
 * Compiles the selections of an operation into a function from the results of its root fields to JSON text. Null when a
 * type was not made from our declarations.
 */
export function compileText(
  schema: GraphQLSchema,
  { document, roots }: Specialised,
  max_bytes: number,
): TextWriter | null {
  const operation = document.definitions[0] as OperationDefinitionNode;
  const type = schema.getRootType(operation.operation)!;
  const asked: WrittenRoot[] = [];
  for (const [key, node] of roots) {
    const source = rootSourceOf(type.getFields()[node.name.value]!);
    if (!source) return null;
    asked.push({ ...source, key, node });
  }
  const compiler = new TextCompiler(schema, document.definitions.slice(1) as FragmentDefinitionNode[]);
  const body = compiler.body(type, operation.selectionSet, asked);
  if (body === null) return null;
  const make = new Function('values', 'held', 'longest', body) as (
    values: typeof VALUES,
    held: readonly unknown[],
    longest: number,
  ) => (answers: readonly { value: unknown }[]) => string;
  const text = make(VALUES, compiler.held, max_bytes);
  return {
    roots: asked,
    length: body.length,
    write(answers) {
      try {
        return text(answers);
      } catch (error) {
        if (error === TOO_LONG) throw new AnswerTooLarge(max_bytes);
        // An executor meets the same failure in the same results, and reports it.
        return null;
      }
    },
  };
}
