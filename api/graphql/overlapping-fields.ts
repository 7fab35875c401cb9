import {
  getNamedType,
  GraphQLError,
  isAbstractType,
  isObjectType,
  Kind,
  print,
  type FieldNode,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  type SelectionSetNode,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';

interface Found {
  node: FieldNode;
  parent: GraphQLObjectType;
}
type Selections = readonly { set: SelectionSetNode; parent: GraphQLNamedType | undefined }[];

/**
 * "Fields in set can merge" of the GraphQL specification, in time linear in the fields after spreading, which the
 * limits bound. The rule of graphql-js compares each field with each other of its name, and seconds pass over a
 * document of 4,000 tokens. Without interfaces and unions, which this schema must not have, fields of one parent merge
 * exactly if name and arguments are the same, and that is transitive: comparing each with the first is enough.
 */
export function overlappingFields(schema: GraphQLSchema): ValidationRule {
  const abstract = Object.values(schema.getTypeMap()).find(isAbstractType);
  if (abstract) throw new Error(`overlapping fields are judged without abstract types, and ${abstract.name} is one`);
  return (context) => {
    const written = new Map<FieldNode, string>();
    return {
      OperationDefinition(operation) {
        const parent = schema.getRootType(operation.operation) ?? undefined;
        check(context, [{ set: operation.selectionSet, parent }], written);
      },
    };
  };
}

function check(context: ValidationContext, selections: Selections, written: Map<FieldNode, string>): void {
  for (const [key, fields] of grouped(context, selections)) {
    const [first, ...others] = fields as [Found, ...Found[]];
    const merged = [first];
    for (const other of others) {
      // Fields of another object's fragment never meet these; another rule says that such a fragment cannot apply.
      if (other.parent !== first.parent) continue;
      const difference = differenceOf(first.node, other.node, written);
      if (difference === null) merged.push(other);
      else context.reportError(conflict(key, difference, [first.node, other.node]));
    }
    const type = first.parent.getFields()[first.node.name.value]?.type;
    const below = merged.flatMap(({ node }) =>
      node.selectionSet ? { set: node.selectionSet, parent: type && getNamedType(type) } : [],
    );
    if (below.length > 0) check(context, below, written);
  }
}

/** Fields of all the sets with what their fragments bring in, by the name that they answer under. */
function grouped(context: ValidationContext, selections: Selections): Map<string, Found[]> {
  const groups = new Map<string, Found[]>();
  const spread = new Set<string>();
  const collect = (set: SelectionSetNode, parent: GraphQLNamedType | undefined): void => {
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        if (!isObjectType(parent)) continue;
        const key = (selection.alias ?? selection.name).value;
        const group = groups.get(key);
        if (group) group.push({ node: selection, parent });
        else groups.set(key, [{ node: selection, parent }]);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        const on = selection.typeCondition?.name.value;
        collect(selection.selectionSet, on === undefined ? parent : context.getSchema().getType(on));
      } else if (!spread.has(selection.name.value)) {
        spread.add(selection.name.value);
        const fragment = context.getFragment(selection.name.value);
        if (fragment) collect(fragment.selectionSet, context.getSchema().getType(fragment.typeCondition.name.value));
      }
    }
  };
  for (const { set, parent } of selections) collect(set, parent);
  return groups;
}

function differenceOf(one: FieldNode, other: FieldNode, written: Map<FieldNode, string>): string | null {
  if (one.name.value !== other.name.value) {
    return `"${one.name.value}" and "${other.name.value}" are different fields`;
  }
  const same = argumentsOf(one, written) === argumentsOf(other, written);
  return same ? null : 'they have differing arguments';
}

/** The arguments as one text that does not depend on their order, nor on that of members inside them. */
function argumentsOf(node: FieldNode, written: Map<FieldNode, string>): string {
  if (!node.arguments || node.arguments.length === 0) return '';
  let text = written.get(node);
  if (text === undefined) {
    text = node.arguments
      .map(({ name, value }) => `${name.value}:${print(sorted(value))}`)
      .sort()
      .join('\n');
    written.set(node, text);
  }
  return text;
}

function sorted<T extends import('graphql').ValueNode>(value: T): T {
  if (value.kind === Kind.LIST) return { ...value, values: value.values.map(sorted) };
  if (value.kind !== Kind.OBJECT) return value;
  const fields = value.fields.map((field) => ({ ...field, value: sorted(field.value) }));
  return { ...value, fields: fields.sort((a, b) => (a.name.value < b.name.value ? -1 : 1)) };
}

function conflict(key: string, difference: string, nodes: FieldNode[]): GraphQLError {
  const advice = 'Use different aliases on the fields to fetch both if this was intentional.';
  return new GraphQLError(`Fields "${key}" conflict because ${difference}. ${advice}`, { nodes });
}
