import {
  getNamedType,
  getNullableType,
  isListType,
  isObjectType,
  Kind,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { MAX_ANSWER_BYTES } from '../../http/answers/answer-size';

/** Upper bounds for a document. Every count includes spread fragments. */
export interface GraphqlLimits {
  /** Tokens of the text; the parser stops there. */
  tokens: number;
  /** Comments, which are not tokens, but which the parser links as well. */
  comments: number;
  depth: number;
  /**
   * Fields after fragments are spread, those inside a list counted {@link LIST_FACTOR} times for each list around them.
   */
  complexity: number;
  aliases: number;
  root_fields: number;
  directives: number;
  /** Lists inside lists along one path, by which recursive and circular queries grow. */
  nested_lists: number;
  /** Bytes of the answer's JSON text. */
  answer_bytes: number;
}

export const DEFAULT_LIMITS: GraphqlLimits = {
  tokens: 4000,
  comments: 1000,
  depth: 15,
  complexity: 5000,
  aliases: 30,
  root_fields: 20,
  directives: 20,
  nested_lists: 4,
  answer_bytes: MAX_ANSWER_BYTES,
};

const LIST_FACTOR = 5;
/**
 * Weight of introspection fields. The usual introspection query has some 8,600 fields, whatever the schema; its lists
 * are read from memory, and only where the explorer is on, so that half of its count is within the limit.
 */
const INTROSPECTION_FACTOR = 0.5;
const INTROSPECTION = new Set<GraphQLField<unknown, unknown> | undefined>([SchemaMetaFieldDef, TypeMetaFieldDef]);
/** Upper bound of counts, because a document of 30 fragments can spell 2^30 fields. */
const CEILING = 1e9;

/** Totals of a selection set, including all nested ones. */
interface Totals {
  depth: number;
  complexity: number;
  /** Fields at the top of the set, after spreading. */
  fields: number;
  aliases: number;
  directives: number;
  nested_lists: number;
}

/** Measured size of an operation. */
export interface MeasuredOperation {
  /** Number of root fields, which is the cost of a request. */
  readonly cost: number;
  readonly complexity: number;
}

export type Measured =
  | { ok: true; operations: ReadonlyMap<OperationDefinitionNode, MeasuredOperation> }
  | { ok: false; message: string; node: OperationDefinitionNode | FragmentDefinitionNode };

/**
 * Measures a parsed document in one pass: each fragment is measured once, so that the work is linear in the text
 * however often fragments are spread. Runs before validation, some of whose rules are quadratic.
 */
export function measure(document: DocumentNode, schema: GraphQLSchema, limits: GraphqlLimits): Measured {
  const fragments = new Map<string, FragmentDefinitionNode>();
  const operations: OperationDefinitionNode[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
    else if (definition.kind === Kind.OPERATION_DEFINITION) operations.push(definition);
  }
  const meter = new Meter(schema, fragments);
  const measured = new Map<OperationDefinitionNode, MeasuredOperation>();
  let aliases = 0;
  let directives = 0;
  for (const operation of operations) {
    const totals = meter.measure(operation.selectionSet, schema.getRootType(operation.operation) ?? undefined);
    aliases += totals.aliases;
    directives += totals.directives + (operation.directives?.length ?? 0);
    const message = meter.circular ? 'A fragment spreads itself' : excess({ ...totals, aliases, directives }, limits);
    if (message) return { ok: false, message, node: operation };
    measured.set(operation, { cost: totals.fields, complexity: totals.complexity });
  }
  const extra = operations[limits.root_fields];
  if (extra) return { ok: false, message: over('operations', limits.root_fields), node: extra };
  // Unused fragments are measured as well, because the validator reads them.
  for (const fragment of fragments.values()) {
    const totals = meter.fragment(fragment);
    const message = meter.circular ? 'A fragment spreads itself' : excess({ ...totals, fields: 0 }, limits);
    if (message) return { ok: false, message, node: fragment };
  }
  return { ok: true, operations: measured };
}

const over = (what: string, limit: number) => `The query has too many ${what}: at most ${limit}`;

function excess(totals: Totals, limits: GraphqlLimits): string | null {
  if (totals.fields > limits.root_fields) return over('root fields', limits.root_fields);
  if (totals.aliases > limits.aliases) return over('aliases', limits.aliases);
  if (totals.directives > limits.directives) return over('directives', limits.directives);
  if (totals.depth > limits.depth) return `The query is nested too deeply: at most ${limits.depth} levels`;
  if (totals.nested_lists > limits.nested_lists) return over('lists inside lists', limits.nested_lists);
  if (totals.complexity > limits.complexity) return `The query is too complex: at most ${limits.complexity} fields`;
  return null;
}

class Meter {
  circular = false;
  private readonly known = new Map<string, Totals>();
  private readonly open = new Set<string>();

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  ) {}

  measure(set: SelectionSetNode, parent: GraphQLNamedType | undefined): Totals {
    const sum: Totals = { depth: 0, complexity: 0, fields: 0, aliases: 0, directives: 0, nested_lists: 0 };
    for (const selection of set.selections) {
      sum.directives = capped(sum.directives + (selection.directives?.length ?? 0));
      if (selection.kind === Kind.FIELD) {
        const definition = this.definition(parent, selection.name.value);
        const list = definition !== undefined && hasList(definition);
        const below = selection.selectionSet
          ? this.measure(selection.selectionSet, definition && getNamedType(definition.type))
          : null;
        sum.fields = capped(sum.fields + 1);
        if (selection.alias) sum.aliases = capped(sum.aliases + 1);
        const factor = INTROSPECTION.has(definition) ? INTROSPECTION_FACTOR : list ? LIST_FACTOR : 1;
        sum.complexity = capped(sum.complexity + 1 + (below ? below.complexity * factor : 0));
        sum.depth = Math.max(sum.depth, 1 + (below?.depth ?? 0));
        sum.nested_lists = Math.max(sum.nested_lists, (below?.nested_lists ?? 0) + (list && below ? 1 : 0));
        if (below) {
          sum.aliases = capped(sum.aliases + below.aliases);
          sum.directives = capped(sum.directives + below.directives);
        }
      } else {
        const spread =
          selection.kind === Kind.INLINE_FRAGMENT
            ? this.measure(selection.selectionSet, this.named(selection.typeCondition?.name.value) ?? parent)
            : this.spread(selection.name.value);
        if (!spread) continue;
        sum.fields = capped(sum.fields + spread.fields);
        sum.complexity = capped(sum.complexity + spread.complexity);
        sum.aliases = capped(sum.aliases + spread.aliases);
        sum.directives = capped(sum.directives + spread.directives);
        sum.depth = Math.max(sum.depth, spread.depth);
        sum.nested_lists = Math.max(sum.nested_lists, spread.nested_lists);
      }
    }
    return sum;
  }

  fragment(fragment: FragmentDefinitionNode): Totals {
    const name = fragment.name.value;
    const known = this.known.get(name);
    if (known) return known;
    this.open.add(name);
    const totals = this.measure(fragment.selectionSet, this.named(fragment.typeCondition.name.value));
    totals.directives = capped(totals.directives + (fragment.directives?.length ?? 0));
    this.open.delete(name);
    this.known.set(name, totals);
    return totals;
  }

  private spread(name: string): Totals | null {
    const fragment = this.fragments.get(name);
    if (!fragment) return null;
    if (!this.open.has(name)) return this.fragment(fragment);
    this.circular = true;
    return null;
  }

  private named(name: string | undefined): GraphQLNamedType | undefined {
    return name === undefined ? undefined : this.schema.getType(name);
  }

  private definition(parent: GraphQLNamedType | undefined, name: string): GraphQLField<unknown, unknown> | undefined {
    if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
    return isObjectType(parent) ? parent.getFields()[name] : undefined;
  }
}

function hasList(field: GraphQLField<unknown, unknown>): boolean {
  return isListType(getNullableType(field.type));
}

const capped = (count: number): number => Math.min(count, CEILING);
