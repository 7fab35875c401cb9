import type { FieldNode, FragmentDefinitionNode, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import { rootSourceOf, type RootSource } from './sources';
import type { Specialised } from './specialise';
import { TextCompiler } from './text-compiler';
import { VALUES } from './text-values';

/** A field of the root, as it is asked for by an operation. */
export interface WrittenRoot extends RootSource {
  key: string;
  node: FieldNode;
}

/** Writes the answer of one operation from what its fields of the root have answered. */
export interface TextWriter {
  readonly roots: readonly WrittenRoot[];
  /**
   * The whole body; null, and nothing has happened, where an answer is not exactly what its type promises, so that only
   * an executor knows what to say. `answers` are those of the roots, in their order.
   */
  write(answers: readonly { value: unknown }[]): string | null;
  /** Characters of the compiled function. */
  readonly length: number;
}

/**
 * Compiles what an operation selects into one function from the records of its operations to JSON text. Null where a
 * type was not made of our declarations.
 */
export function compileText(schema: GraphQLSchema, { document, roots }: Specialised): TextWriter | null {
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
  const make = new Function('values', 'held', body) as (
    values: typeof VALUES,
    held: readonly unknown[],
  ) => (answers: readonly { value: unknown }[]) => string;
  const text = make(VALUES, compiler.held);
  return {
    roots: asked,
    length: body.length,
    write(answers) {
      try {
        return text(answers);
      } catch {
        // Whatever it was, an executor meets it in the same answers, and tells of it.
        return null;
      }
    },
  };
}
