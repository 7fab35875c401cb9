import {
  getNamedType,
  GraphQLError,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isUnionType,
  Kind,
  print,
  TypeNameMetaFieldDef,
  type FieldNode,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type GraphQLUnionType,
  type SelectionSetNode,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';

interface FieldInstance {
  node: FieldNode;
  /** A union has no field but `__typename`. */
  parent: GraphQLObjectType | GraphQLUnionType;
}
type Selections = readonly { set: SelectionSetNode; parent: GraphQLNamedType | undefined }[];

/**
 * "Fields in set can merge" of the GraphQL specification, in time linear in the fields after spreading, which the
 * limits bound. The rule of graphql-js compares each pair of fields of a name, which takes seconds for a document of
 * 4,000 tokens. Fields of one object merge exactly if name and arguments are the same, and fields of different objects
 * of a union if their values have the same shape. Both relations are transitive, so that comparing each field with the
 * first is enough. The schema has no interfaces.
 */
export function overlappingFields(schema: GraphQLSchema): ValidationRule {
  const types = Object.values(schema.getTypeMap());
  const found = types.find(isInterfaceType);
  if (found) throw new Error(`overlapping fields are judged without interfaces, and ${found.name} is one`);
  const unions = types.some(isUnionType);
  return (context) => {
    const written = new Map<FieldNode, string>();
    return {
      OperationDefinition(operation) {
        const parent = schema.getRootType(operation.operation) ?? undefined;
        check(context, [{ set: operation.selectionSet, parent }], written);
        if (unions) checkShapes(context, [{ set: operation.selectionSet, parent }]);
      },
    };
  };
}

function check(context: ValidationContext, selections: Selections, written: Map<FieldNode, string>): void {
  for (const [key, fields] of grouped(context, selections)) {
    for (const [parent, ofParent] of byParent(fields)) {
      const [first, ...others] = ofParent as [FieldInstance, ...FieldInstance[]];
      const merged = [first];
      for (const other of others) {
        const difference = differenceOf(first.node, other.node, written);
        if (difference === null) merged.push(other);
        else context.reportError(conflict(key, difference, [first.node, other.node]));
      }
      const below = belowOf(merged, parent);
      if (below.length > 0) check(context, below, written);
    }
  }
}

function byParent(fields: readonly FieldInstance[]): Map<FieldInstance['parent'], FieldInstance[]> {
  const parents = new Map<FieldInstance['parent'], FieldInstance[]>();
  for (const field of fields) parents.set(field.parent, [...(parents.get(field.parent) ?? []), field]);
  return parents;
}

const typeOf = ({ node, parent }: FieldInstance): GraphQLOutputType | undefined =>
  node.name.value === TypeNameMetaFieldDef.name
    ? TypeNameMetaFieldDef.type
    : isObjectType(parent)
      ? parent.getFields()[node.name.value]?.type
      : undefined;

const belowOf = (fields: readonly FieldInstance[], parent?: FieldInstance['parent']): Selections =>
  fields.flatMap((field) => {
    const type = typeOf({ ...field, parent: parent ?? field.parent });
    return field.node.selectionSet ? [{ set: field.node.selectionSet, parent: type && getNamedType(type) }] : [];
  });

/** Checks that all values of a response name have the same shape, in every object of a union. */
function checkShapes(context: ValidationContext, selections: Selections): void {
  for (const [key, fields] of grouped(context, selections)) {
    const [first, ...others] = fields as [FieldInstance, ...FieldInstance[]];
    const shape = typeTextOf(first);
    const union = fields.some(({ parent }) => isUnionType(parent));
    const other = others.find(
      (one) => typeTextOf(one) !== shape || (union && one.node.name.value !== first.node.name.value),
    );
    if (other) context.reportError(conflict(key, 'they return conflicting types', [first.node, other.node]));
    else {
      const below = belowOf(fields);
      if (below.length > 0) checkShapes(context, below);
    }
  }
}

/** Type with its lists and nulls; all objects are equal, because their fields are compared one by one. */
function typeTextOf(field: FieldInstance): string {
  const type = typeOf(field);
  if (!type) return '';
  const named = getNamedType(type);
  return isLeafType(named) ? String(type) : String(type).replace(named.name, '{}');
}

/** Fields of all the sets, including those of fragments, by response name. */
function grouped(context: ValidationContext, selections: Selections): Map<string, FieldInstance[]> {
  const groups = new Map<string, FieldInstance[]>();
  const spread = new Set<string>();
  const collect = (set: SelectionSetNode, parent: GraphQLNamedType | undefined): void => {
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        if (!isObjectType(parent) && !isUnionType(parent)) continue;
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

/** Arguments as a text that is independent of their order and of the order of their members. */
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
