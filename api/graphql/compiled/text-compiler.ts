import {
  getNamedType,
  GraphQLBoolean,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  isAbstractType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  isUnionType,
  Kind,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type GraphQLUnionType,
  type NamedTypeNode,
  type SelectionSetNode,
} from 'graphql';
import { DateTime, Int53, JsonScalar, Uuid } from '../scalars';
import { sourceOf, unionSourceOf, type Source } from '../sources';
import { TYPENAME } from './specialise';
import { VALUES } from './text-values';

/** Name of the writer in {@link VALUES} by scalar. */
const SCALARS = new Map<unknown, keyof typeof VALUES>([
  [GraphQLString, 'quoted'],
  [GraphQLID, 'quoted'],
  [Uuid, 'quoted'],
  [DateTime, 'quoted'],
  [GraphQLInt, 'int'],
  [Int53, 'int53'],
  [GraphQLFloat, 'float'],
  [GraphQLBoolean, 'boolean'],
  [JsonScalar, 'json'],
]);

/** Code of a concatenation of constant texts and expressions. */
class Concatenation {
  private readonly parts: string[] = [];
  private known = '';

  text(text: string): void {
    this.known += text;
  }
  code(expression: string): void {
    this.flush();
    this.parts.push(expression);
  }
  toString(): string {
    this.flush();
    return this.parts.join(' + ');
  }
  private flush(): void {
    if (this.known !== '') this.parts.push(JSON.stringify(this.known));
    this.known = '';
  }
}

/** A root field: its response name, and the member of its result that is shown. */
interface AskedRoot {
  key: string;
  member: string | null;
}

/** Generates functions, each for a list, an object or a union at a position in an operation. */
export class TextCompiler {
  /** Values that the functions use and that code cannot contain. */
  readonly held: unknown[] = [];
  private readonly functions: string[] = [];
  private readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** False once a selection needs an executor. */
  private possible = true;

  constructor(
    private readonly schema: GraphQLSchema,
    fragments: readonly FragmentDefinitionNode[],
  ) {
    this.fragments = new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
  }

  /** Body of a function that makes the writer of a whole answer; null when an executor is needed. */
  body(type: GraphQLObjectType, set: SelectionSetNode, roots: readonly AskedRoot[]): string | null {
    const answer = this.members(type, [set], (_name, key) => {
      const index = roots.findIndex((root) => root.key === key);
      return this.read(`answers[${index}].value`, roots[index]!.member ?? undefined);
    });
    if (!this.possible) return null;
    const lines = [
      `const { ${Object.keys(VALUES).join(', ')} } = values;`,
      ...this.held.map((_one, index) => `const held${index} = held[${index}];`),
      ...this.functions,
      `return (answers) => { let x; return '{"data":' + ${answer} + '}'; };`,
    ];
    return lines.join('\n');
  }

  /** Code for the text of an object with its selected members. */
  private members(
    type: GraphQLObjectType,
    sets: readonly SelectionSetNode[],
    read: (name: string, key: string) => string,
  ): string {
    const out = new Concatenation();
    let before = '{';
    for (const [key, nodes] of this.collect(type, sets)) {
      out.text(`${before}${JSON.stringify(key)}:`);
      before = ',';
      const name = nodes[0]!.name.value;
      if (name === TYPENAME) out.text(JSON.stringify(type.name));
      else this.value(out, type.getFields()[name]!.type, nodes, read(name, key));
    }
    out.text(before === '{' ? '{}' : '}');
    return String(out);
  }

  /** Fields by response name, in the order of the GraphQL specification (CollectFields). */
  private collect(type: GraphQLObjectType, sets: readonly SelectionSetNode[]): Map<string, FieldNode[]> {
    const fields = new Map<string, FieldNode[]>();
    const spread = new Set<string>();
    const add = ({ selections }: SelectionSetNode): void => {
      for (const selection of selections) {
        if (selection.kind === Kind.FIELD) {
          const key = (selection.alias ?? selection.name).value;
          const known = fields.get(key);
          if (known) known.push(selection);
          else fields.set(key, [selection]);
        } else if (selection.kind === Kind.INLINE_FRAGMENT) {
          if (this.concerns(selection.typeCondition, type)) add(selection.selectionSet);
        } else if (!spread.has(selection.name.value)) {
          spread.add(selection.name.value);
          const fragment = this.fragments.get(selection.name.value)!;
          if (this.concerns(fragment.typeCondition, type)) add(fragment.selectionSet);
        }
      }
    };
    sets.forEach(add);
    return fields;
  }

  private concerns(condition: NamedTypeNode | undefined, type: GraphQLObjectType): boolean {
    if (!condition || condition.name.value === type.name) return true;
    const named = this.schema.getType(condition.name.value);
    return isAbstractType(named) && this.schema.isSubType(named, type);
  }

  /** Adds the text of a value; evaluates the expression `read` once. */
  private value(
    out: Concatenation,
    type: GraphQLOutputType,
    nodes: readonly FieldNode[],
    read: string,
    isNull = '== null',
  ): void {
    if (!isNonNullType(type)) {
      out.code(`((x = ${read}) ${isNull} ? "null" : ${this.written(type, nodes, 'x')})`);
    } else if (SCALARS.get(type.ofType) === 'quoted') {
      out.text('"');
      out.code(`string(${read})`);
      out.text('"');
    } else {
      out.code(this.written(type.ofType, nodes, read));
    }
  }

  /** Expression for the text of a non-null value. */
  private written(type: GraphQLOutputType, nodes: readonly FieldNode[], value: string): string {
    const scalar = SCALARS.get(type);
    if (scalar) return `${scalar}(${value})`;
    if (isEnumType(type)) {
      const names = new Map(type.getValues().map((one) => [one.value as unknown, JSON.stringify(one.name)]));
      return `named(${this.hold(names)}, ${value})`;
    }
    if (isListType(type)) return `${this.list(type.ofType, nodes)}(${value})`;
    const sets = nodes.map(({ selectionSet }) => selectionSet!);
    if (isObjectType(type)) return `${this.object(type, sets)}(${value})`;
    if (isUnionType(type)) return `${this.union(type, sets)}(${value})`;
    this.possible = false;
    return isScalarType(type) ? 'refused()' : '';
  }

  private list(item: GraphQLOutputType, nodes: readonly FieldNode[]): string {
    const one = new Concatenation();
    this.value(one, item, nodes, 'all[i]', '=== null');
    return this.declare(
      'all',
      `if (!Array.isArray(all)) refused();
      let x, text = "[";
      for (let i = 0; i < all.length; i += 1) {
        if (i > 0) text += ",";
        text += ${String(one)};
        if (text.length > longest) tooLong();
      }
      return text + "]";`,
    );
  }

  private object(type: GraphQLObjectType, sets: readonly SelectionSetNode[]): string {
    const fields = type.getFields();
    const read = new Set<string>();
    const text = this.members(type, sets, (name) => {
      read.add(name);
      const source = sourceOf(fields[name]!);
      if (source === undefined) this.possible = false;
      return this.read('one', source);
    });
    // Executors also refuse an unknown object of a union that is not selected.
    if (Object.values(fields).some((field) => !read.has(field.name) && holdsUnion(field.type))) this.possible = false;
    return this.declare('one', `${IS_OBJECT} let x; return ${text};`);
  }

  private union(type: GraphQLUnionType, sets: readonly SelectionSetNode[]): string {
    const source = unionSourceOf(type);
    if (!source) this.possible = false;
    const cases = [...(source?.types ?? [])].map(
      ([value, object]) => `case ${JSON.stringify(value)}: return ${this.object(object, sets)}(one);`,
    );
    const chosen = this.read('one', source?.member);
    return this.declare('one', `${IS_OBJECT} switch (${chosen}) { ${cases.join(' ')} default: return refused(); }`);
  }

  private read(record: string, source: Source | undefined): string {
    if (source === undefined) return record;
    return typeof source === 'string' ? `${record}[${JSON.stringify(source)}]` : `${this.hold(source)}(${record})`;
  }

  private hold(one: unknown): string {
    return `held${this.held.push(one) - 1}`;
  }

  private declare(parameter: string, body: string): string {
    const name = `write${this.functions.length}`;
    this.functions.push(`const ${name} = (${parameter}) => { ${body} };`);
    return name;
  }
}

/** Whether the type is a union or contains one. */
function holdsUnion(type: GraphQLOutputType, seen = new Set<unknown>()): boolean {
  const named = getNamedType(type);
  if (seen.has(named)) return false;
  seen.add(named);
  return (
    isUnionType(named) ||
    (isObjectType(named) && Object.values(named.getFields()).some((field) => holdsUnion(field.type, seen)))
  );
}

const IS_OBJECT = 'if (typeof one !== "object" || one === null) refused();';
