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
import { locationOf } from '../limits/locations';

export const TYPENAME = '__typename';

export interface Specialised {
  document: DocumentNode;
  /** Root field of each response name. */
  roots: ReadonlyMap<string, FieldNode>;
}

/** Names of the variables in `@skip` and `@include` of a document, sorted. */
export function conditionsOf(document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  visit(document, {
    [Kind.DIRECTIVE]: ({ arguments: directive_arguments }) => {
      for (const { value } of directive_arguments ?? []) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  return [...names].sort();
}

/**
 * Reduces an operation to a document of selections only: applies `@skip` and `@include` with the given variables, and
 * removes the variables, so that the compiler's handling of directives and variables does not matter. Null for
 * documents that only graphql-js executes correctly: introspection, response names with two underscores, and several
 * mutations, of which none may run after a failed one.
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
    // The compiler reads line and column from the first token of the location.
    ({ ...node, directives: [], loc: { startToken: locationOf(node) } }) as unknown as T;

  function set(directive_arguments: SelectionSetNode): SelectionSetNode {
    const selections: SelectionNode[] = [];
    for (const selection of directive_arguments.selections) {
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
    return { ...directive_arguments, selections };
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
  return (directives ?? []).every(({ name, arguments: directive_arguments }) => {
    const value = directive_arguments?.[0]?.value;
    const holds =
      value?.kind === Kind.VARIABLE ? variables[value.name.value] : value?.kind === Kind.BOOLEAN && value.value;
    return name.value === 'skip' ? holds === false : name.value !== 'include' || holds === true;
  });
}

/** Root fields by response name. Fields of one name have the same arguments, so that any of them is sufficient. */
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
