import fc from 'fast-check';

/** Draws one value of an arbitrary; what is drawn can be replayed from the seed. */
export type Draw = <T>(arbitrary: fc.Arbitrary<T>) => T;

export interface GeneratedRequest {
  query: string;
  operation_name: string | undefined;
  variables: Record<string, unknown>;
}

const TEXTS = ['x', '', 'fail', 'broken', 'null', 'big', 'list', 'mood', 'nothing', 'ü"\\\n', '__proto__'];
const UUIDS = ['0197f3a0-0000-7000-8000-000000000001', 'no uuid'];
const ALIASES = ['a', 'b', 'constructor', 'toString', 'hasOwnProperty', 'then', 'length', '__typename', '__proto__'];
const JSON_TYPES = ['JSON', 'String', 'Int', 'Boolean', 'Mood', '[String!]', 'InnerInput'];

const INNER: Record<string, string> = { label: 'String!', weight: 'Float', tags: '[String!]', more: 'JSON' };
const MEMBERS: Record<string, string> = {
  text: 'String',
  count: 'Int',
  ratio: 'Float',
  flag: 'Boolean',
  mood: 'Mood',
  labels: '[String!]',
  ids: '[UUID!]',
  inner: 'InnerInput',
  inners: '[InnerInput!]',
  raw: 'JSON',
};
/** Root fields with their arguments and what they return. */
const QUERIES: Record<string, [Record<string, string>, string]> = {
  thing: [MEMBERS, 'Thing'],
  perhaps: [{ filter: 'PerhapsFilterInput' }, 'Thing'],
  things: [{ filter: 'ThingsFilterInput' }, 'PaginatedThingResult'],
  drawings: [{}, 'Drawing'],
};
const MUTATIONS: Record<string, [Record<string, string>, string]> = {
  makeThing: [{ input: 'MakeThingInput!' }, 'Thing'],
  changeThing: [{ id: 'String!', input: 'ChangeThingInput' }, 'Thing'],
};
const INPUTS: Record<string, Record<string, string>> = {
  InnerInput: INNER,
  PerhapsFilterInput: MEMBERS,
  ThingsFilterInput: { text: 'String', raw: 'JSON', limit: 'Int' },
  MakeThingInput: { ...MEMBERS, count: 'Int!' },
  ChangeThingInput: MEMBERS,
};
/** Fields of the types that are answered; a leaf has no type. */
const OUTPUTS: Record<string, Record<string, string>> = {
  Query: {},
  Mutation: {},
  PaginatedThingResult: { items: 'Thing', total: '', pages: '', partial: '' },
  Thing: { id: '', text: '', mood: '', raw: '', leaf: 'Leaf', maybe: 'Leaf', leaves: 'Leaf', holes: 'Leaf' },
  Leaf: { name: '', size: '' },
  Drawing: {
    drawingId: '',
    drawnAt: '',
    bytes: '',
    ratio: '',
    live: '',
    moods: '',
    grid: '',
    shape: 'Shape',
  },
  Round: { kind: '', radius: '', label: '' },
  Square: { kind: '', side: '', inside: 'Leaf' },
};
const UNIONS: Record<string, readonly string[]> = { Shape: ['Round', 'Square'] };

/** Writes a document and its variables: mostly valid, with now and then something that the executors have to refuse. */
export function generateRequest(draw: Draw): GeneratedRequest {
  return new Writer(draw).request();
}

class Writer {
  private readonly fragments: { name: string; type: string; text: string }[] = [];
  private variables: Record<string, unknown> = {};
  private definitions: string[] = [];
  private made = 0;

  constructor(private readonly draw: Draw) {}

  request(): GeneratedRequest {
    const operation = this.operation('one');
    const { variables } = this;
    const texts = [operation];
    const two = this.chance(6);
    if (two) {
      this.fragments.length = 0;
      this.definitions = [];
      texts.push(this.operation('two'));
    }
    // A name that no operation has is the door's affair; here it must be one of them.
    const operation_name = two ? 'one' : this.chance(2) ? 'one' : undefined;
    return { query: texts.join('\n'), operation_name, variables };
  }

  private operation(name: string): string {
    const kind = this.chance(3) ? 'mutation' : 'query';
    const root = kind === 'query' ? 'Query' : 'Mutation';
    const set = this.selections(root, 0);
    const definitions = this.definitions.length > 0 ? `(${this.definitions.join(' ')})` : '';
    const fragments = this.fragments.map(({ name: fragment, type, text }) => `fragment ${fragment} on ${type} ${text}`);
    return [`${kind} ${name}${definitions} ${set}`, ...fragments].join('\n');
  }

  private chance(of: number): boolean {
    return this.draw(fc.nat({ max: of - 1 })) === 0;
  }
  private one<T>(of: readonly T[]): T {
    return of[this.draw(fc.nat({ max: of.length - 1 }))]!;
  }
  private many<T>(max: number, make: (i: number) => T): T[] {
    return Array.from({ length: this.draw(fc.nat({ max })) }, (_, i) => make(i));
  }

  private selections(type: string, depth: number): string {
    const parts = [this.field(type, depth), ...this.many(3, () => this.selection(type, depth))];
    return `{ ${parts.join(' ')} }`;
  }

  private selection(type: string, depth: number): string {
    if (depth < 4 && this.chance(5)) {
      const on = this.chance(2) ? ` on ${type}` : '';
      return `...${on}${this.directives()} ${this.selections(type, depth + 1)}`;
    }
    if (depth < 4 && this.chance(5)) {
      const known = this.fragments.filter((fragment) => fragment.type === type);
      if (known.length > 0 && this.chance(2)) return `...${this.one(known).name}${this.directives()}`;
      const text = this.selections(type, depth + 1);
      const name = `f${(this.made += 1)}`;
      this.fragments.push({ name, type, text });
      return `...${name}${this.directives()}`;
    }
    return this.field(type, depth);
  }

  private field(type: string, depth: number): string {
    if (this.chance(12)) return `${this.chance(3) ? `${this.one(ALIASES)}: ` : ''}__typename${this.directives()}`;
    if (type === 'Query' || type === 'Mutation') {
      const roots = type === 'Query' ? QUERIES : MUTATIONS;
      const name = this.one(Object.keys(roots));
      const [takes, gives] = roots[name]!;
      // Almost every root field has a name of its own: fields with other arguments cannot share one.
      const alias = this.chance(8) ? this.one(ALIASES) : `r${(this.made += 1)}`;
      return `${alias}: ${name}${this.argumentsOf(takes)}${this.directives()} ${this.selections(gives, depth + 1)}`;
    }
    const options = UNIONS[type];
    if (options) {
      const on = this.one(options);
      return `... on ${on}${this.directives()} ${this.selections(on, depth + 1)}`;
    }
    const name = this.one(Object.keys(OUTPUTS[type]!));
    const below = OUTPUTS[type]![name]!;
    const alias = this.chance(6) ? `${this.chance(3) ? this.one(ALIASES) : `${name}_again`}: ` : '';
    return `${alias}${name}${this.directives()}${below === '' ? '' : ` ${this.selections(below, depth + 1)}`}`;
  }

  private directives(): string {
    if (!this.chance(5)) return '';
    const one = (name: string) => {
      const value = this.chance(2) ? String(this.draw(fc.boolean())) : this.condition();
      return ` @${name}(if: ${value})`;
    };
    const name = this.one(['skip', 'include']);
    return one(name) + (this.chance(4) ? one(name === 'skip' ? 'include' : 'skip') : '');
  }

  private condition(): string {
    const name = `v${(this.made += 1)}`;
    const plain = this.chance(2);
    this.definitions.push(plain ? `$${name}: Boolean!` : `$${name}: Boolean = ${String(this.draw(fc.boolean()))}`);
    // A condition that is given as null is refused when the document runs.
    if (plain || this.chance(2)) this.variables[name] = !plain && this.chance(6) ? null : this.draw(fc.boolean());
    return `$${name}`;
  }

  private argumentsOf(takes: Record<string, string>): string {
    const given = Object.entries(takes).filter(([, type]) => type.endsWith('!') || !this.chance(3));
    if (given.length === 0) return '';
    return `(${given.map(([name, type]) => `${name}: ${this.value(type, 0)}`).join(', ')})`;
  }

  /** A literal with variables in it, or a variable. */
  private value(type: string, depth: number): string {
    if (this.chance(4)) return this.variable(type);
    if (!type.endsWith('!') && this.chance(8)) return 'null';
    const bare = type.replace(/!$/, '');
    if (bare.startsWith('[')) {
      const item = bare.slice(1, -1);
      if (this.chance(4)) return this.value(item.endsWith('!') ? item : `${item}!`, depth + 1);
      return `[${this.many(3, () => this.value(item, depth + 1)).join(', ')}]`;
    }
    if (bare in INPUTS) {
      const given = Object.entries(INPUTS[bare]!).filter(
        ([, member]) => member.endsWith('!') || (depth < 3 && this.chance(3)),
      );
      return `{${given.map(([name, member]) => `${name}: ${this.value(member, depth + 1)}`).join(', ')}}`;
    }
    switch (bare) {
      case 'JSON':
        return this.json(depth);
      case 'Mood':
        return this.one(['VERY_GOOD', 'BAD']);
      case 'UUID':
        return JSON.stringify(this.one(UUIDS));
      case 'Int':
        return this.one(['0', '-3', '7']);
      case 'Float':
        return this.one(['0', '1.5', '-2e3']);
      case 'Boolean':
        return this.one(['true', 'false']);
      default:
        return JSON.stringify(this.one(TEXTS));
    }
  }

  private json(depth: number): string {
    const leaf = depth > 5 || this.chance(2);
    if (leaf) {
      if (this.chance(3)) return this.variable(this.one(JSON_TYPES));
      return this.one([
        'null',
        '1',
        '-0.5',
        '1e3',
        'true',
        'BAD',
        '"""block\n  text"""',
        '"\\u00e9\\n"',
        '9007199254740991',
      ]);
    }
    if (this.chance(2)) return `[${this.many(3, () => this.json(depth + 1)).join(', ')}]`;
    const names = ['a', 'b', 'toString', 'hasOwnProperty', 'length'];
    return `{${this.many(3, (i) => `${names[i]!}: ${this.json(depth + 1)}`).join(', ')}}`;
  }

  private variable(type: string): string {
    const name = this.chance(10) ? `toString${(this.made += 1)}` : `v${(this.made += 1)}`;
    const bare = type.replace(/!$/, '');
    const withDefault = this.chance(4) && !(bare in INPUTS);
    // A variable that may be null fits where null may not stand only with a default.
    const declared = type.endsWith('!') && withDefault ? bare : type;
    const fallback = withDefault ? ` = ${JSON.stringify(this.given(bare, 3)).replace(/"(VERY_GOOD|BAD)"/g, '$1')}` : '';
    this.definitions.push(`$${name}: ${declared}${fallback.includes('{') ? '' : fallback}`);
    const needed = declared.endsWith('!');
    if (!needed && this.chance(4)) return `$${name}`;
    if (!needed && this.chance(5)) this.variables[name] = null;
    else this.variables[name] = this.chance(25) ? { wrong: [type] } : this.given(bare, 0);
    return `$${name}`;
  }

  /** A value of a variable. */
  private given(type: string, depth: number): unknown {
    const bare = type.replace(/!$/, '');
    if (bare.startsWith('[')) {
      return this.chance(5)
        ? this.given(bare.slice(1, -1), depth)
        : this.many(3, () => this.given(bare.slice(1, -1), depth));
    }
    if (bare in INPUTS) {
      const given = Object.entries(INPUTS[bare]!).filter(
        ([, member]) => member.endsWith('!') || (depth < 2 && this.chance(3)),
      );
      return Object.fromEntries(given.map(([name, member]) => [name, this.given(member, depth + 1)]));
    }
    switch (bare) {
      case 'JSON':
        return this.draw(depth > 2 ? fc.constantFrom(null, 1, true) : fc.jsonValue({ maxDepth: 3 }));
      case 'Mood':
        return this.one(['VERY_GOOD', 'BAD']);
      case 'UUID':
        return this.one(UUIDS);
      case 'Int':
        return this.one([0, -3, 7]);
      case 'Float':
        return this.one([0, 1.5, -2000]);
      case 'Boolean':
        return this.draw(fc.boolean());
      default:
        return this.one(TEXTS);
    }
  }
}
