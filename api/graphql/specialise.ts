import {
  Kind,
  type ConstDirectiveNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  visit,
} from 'graphql';
import { placeOf } from './places';

export const TYPENAME = '__typename';

export interface Specialised {
  document: DocumentNode;
  /** The field of the root that each name is answered with. */
  roots: ReadonlyMap<string, FieldNode>;
}

/** Names of the variables that `@skip` and `@include` of a document look at, sorted. */
export function conditionsOf(document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  visit(document, {
    [Kind.DIRECTIVE]: ({ arguments: given }) => {
      for (const { value } of given ?? []) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  return [...names].sort();
}

/**
 * One operation as a document that holds nothing but selections: `@skip` and `@include` are carried out with the
 * variables given, and no variables are left. What remains is what a compiler cannot get wrong about directives and
 * variables. Null for what only graphql-js does right: introspection, answers under names with two underscores, and
 * several mutations, of which none may run after one that failed.
 */
export function specialise(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): Specialised | null {
  const sources = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) sources.set(definition.name.value, definition);
  }
  const fragments = new Map<string, FragmentDefinitionNode>();
  let plain = true;

  const located = <T extends SelectionNode>(node: T): T =>
    // The compiler asks the location for its first token, and that for line and column.
    ({ ...node, directives: [], loc: { startToken: placeOf(node) } }) as unknown as T;

  function set(given: SelectionSetNode): SelectionSetNode {
    const selections: SelectionNode[] = [];
    for (const selection of given.selections) {
      if (!included(selection.directives, variables)) continue;
      if (selection.kind === Kind.FIELD) {
        const { name, alias, selectionSet } = selection;
        if (alias?.value.startsWith('__') || (name.value.startsWith('__') && name.value !== TYPENAME)) plain = false;
        selections.push({ ...located(selection), selectionSet: selectionSet && set(selectionSet) });
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        selections.push({ ...located(selection), selectionSet: set(selection.selectionSet) });
      } else {
        const source = sources.get(selection.name.value)!;
        if (!fragments.has(selection.name.value)) {
          fragments.set(selection.name.value, { ...source, directives: [], selectionSet: set(source.selectionSet) });
        }
        selections.push(located(selection));
      }
    }
    return { ...given, selections };
  }

  const selectionSet = set(operation.selectionSet);
  if (!plain) return null;
  const roots = rootsOf(selectionSet, fragments);
  if (operation.operation !== 'query' && roots.size > 1) return null;
  const definition = { ...operation, selectionSet, variableDefinitions: [], directives: [] as ConstDirectiveNode[] };
  return { document: { kind: Kind.DOCUMENT, definitions: [definition, ...fragments.values()] }, roots };
}

function included(
  directives: readonly DirectiveNode[] | undefined,
  variables: Readonly<Record<string, unknown>>,
): boolean {
  return (directives ?? []).every(({ name, arguments: given }) => {
    const value = given?.[0]?.value;
    const holds =
      value?.kind === Kind.VARIABLE ? variables[value.name.value] : value?.kind === Kind.BOOLEAN && value.value;
    return name.value === 'skip' ? holds === false : name.value !== 'include' || holds === true;
  });
}

/** What resolvers of the root answer. Fields of one name have the same arguments, so any of them will do. */
function rootsOf(
  set: SelectionSetNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  roots = new Map<string, FieldNode>(),
): Map<string, FieldNode> {
  for (const selection of set.selections) {
    if (selection.kind === Kind.FIELD) {
      if (selection.name.value !== TYPENAME) roots.set((selection.alias ?? selection.name).value, selection);
    } else {
      const inner = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value)!;
      rootsOf(inner.selectionSet, fragments, roots);
    }
  }
  return roots;
}
