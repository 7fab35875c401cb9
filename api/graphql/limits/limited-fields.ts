import {
  Kind,
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';

/** A root field with a limit of its own, and the number of its selections in an operation, including aliases. */
export interface LimitedField {
  readonly name: string;
  readonly per_minute: number;
  readonly calls: number;
}

/** For a document that was measured: its fragments do not spread themselves, and its root fields are few. */
export function limitedFields(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  schema: GraphQLSchema,
): LimitedField[] {
  const fields = schema.getRootType(operation.operation)?.getFields() ?? {};
  const fragments = new Map(
    document.definitions
      .filter((one): one is FragmentDefinitionNode => one.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment.selectionSet]),
  );
  const calls = new Map<string, number>();
  const count = (set: SelectionSetNode | undefined): void => {
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.FRAGMENT_SPREAD) count(fragments.get(selection.name.value));
      else if (selection.kind === Kind.INLINE_FRAGMENT) count(selection.selectionSet);
      else calls.set(selection.name.value, (calls.get(selection.name.value) ?? 0) + 1);
    }
  };
  count(operation.selectionSet);
  return [...calls].flatMap(([name, times]) => {
    const per_minute = fields[name]?.extensions['per_minute'] as number | undefined;
    return per_minute === undefined ? [] : [{ name, per_minute, calls: times }];
  });
}
