import { z } from 'zod';
import type { JsonObject } from '../lib/json/json';

/** The account in the metadata of events that belong to none: users, reservations, system keys. */
export const GLOBAL_ACCOUNT = 'global';

/** Event type as its area declares it. Source: design §5. */
export interface EventDeclaration<Shape extends z.ZodRawShape = z.ZodRawShape> {
  /** The version that this program writes. The first is 1 and leaves no mark in the stored data. */
  readonly version: number;
  /** Every member of the newest version; unknown members are refused. */
  readonly schema: z.ZodObject<Shape, z.core.$strict>;
  /**
   * `upcast[n]` turns version n + 1 into version n + 2; one for each version but the newest. Personal members are moved
   * or left out whole: in a copy of stored events they are sealed.
   */
  readonly upcast: readonly ((data: JsonObject) => JsonObject)[];
  /**
   * Members that are personal, and whose they are (`user:<id>`): they are stored encrypted under that subject's key and
   * read as null once it was erased. Members of older versions stay listed under the name that they had.
   */
  readonly personal: Readonly<Record<string, SubjectOf>>;
  /** How it reads in the audit log; null when another event of the same append says it there. */
  readonly audit: Audited | null;
}

/**
 * Where the entry that an event makes in the audit log is not the usual one: the action is the event's type, the target
 * what its prefix names, under the member `<prefix>_id` (or `key_id` of an `api_key:…`), or what `account:role_changed`
 * names where there is a `role_id`. Source: decision 0029.
 */
export interface Audited {
  /** The entry's action. */
  readonly action?: string;
  /** The installation's own, though the event names an account or a user. */
  readonly log?: 'installation';
  /** Kind of the audited target, and the member with its id. */
  readonly target?: readonly [kind: string, member: string];
  /**
   * Members that distinguish parts of the target (the flag of an override, the role of a user): the previous values are
   * those of the last event with the same members.
   */
  readonly by?: readonly string[];
  /** Members that an entry omits, besides hashes of secrets (`…_hash`), which every entry omits. */
  readonly omit?: readonly string[];
}

/** The subject of a personal member; null when the event is about nobody, who then has nothing to keep secret. */
export type SubjectOf = (data: JsonObject) => string | null;

/** The subject that a member of the event names: `subject('user', 'user_id')` gives `user:<user_id>`. */
export const subject =
  (kind: string, member: string): SubjectOf =>
  (data) =>
    typeof data[member] === 'string' ? `${kind}:${data[member]}` : null;

export interface EventOptions {
  /** Default 1. */
  version?: number;
  upcast?: EventDeclaration['upcast'];
  personal?: EventDeclaration['personal'];
  audit?: EventDeclaration['audit'];
}

/** The event types of one area, declared once: the union, the names, the validation and the columns come from here. */
export interface EventSet<Declared extends Readonly<Record<string, EventDeclaration>>> {
  readonly declared: Declared;
  readonly types: readonly string[];
}

/** Any area's set. */
export type AnyEventSet = EventSet<Readonly<Record<string, EventDeclaration>>>;

/** The union of an area's events, each with its `type`. */
export type EventOf<Set extends AnyEventSet> = Set extends { declared: infer Declared extends AnyEventSet['declared'] }
  ? { [Type in keyof Declared & string]: { type: Type } & z.output<Declared[Type]['schema']> }[keyof Declared & string]
  : never;

/** An instant as RFC 3339 text in UTC; a `timestamptz` where SQL reads it. */
export const instant = () => z.iso.datetime();

/**
 * Declares one event type by the shape of its members.
 * @throws Error when versions and upcasters do not match, or a personal member is not nullable
 */
export function event<const Shape extends z.ZodRawShape>(
  shape: Shape,
  { version = 1, upcast = [], personal = {}, audit = {} }: EventOptions = {},
): EventDeclaration<Shape> {
  if (upcast.length !== version - 1) {
    throw new Error(`version ${version} of an event needs ${version - 1} upcasters, there are ${upcast.length}`);
  }
  const schema = z.strictObject(shape);
  for (const member of Object.keys(personal)) {
    const declared = schema.shape[member] as z.ZodType | undefined;
    if (declared === undefined && version === 1) throw new Error(`the personal member ${member} is not declared`);
    if (declared !== undefined && !declared.safeParse(null).success) {
      throw new Error(`the personal member ${member} reads as null after an erasure: declare it nullable`);
    }
  }
  return { version, schema, upcast, personal, audit };
}

const TYPE = /^[a-z][a-z0-9_]*:[a-z][a-z0-9_]*$/;

/**
 * Declares an area's events by type.
 * @throws Error when a type is not `subject:past_or_noun`
 */
export function events<const Declared extends Readonly<Record<string, EventDeclaration>>>(
  declared: Declared,
): EventSet<Declared> {
  const types = Object.keys(declared);
  const odd = types.find((type) => !TYPE.test(type));
  if (odd !== undefined) throw new Error(`an event type is subject:past_or_noun, ${odd} is not`);
  return { declared, types };
}

/** All declarations by type. */
export type EventCatalogue = ReadonlyMap<string, EventDeclaration>;

/**
 * Puts the areas' sets together.
 * @throws Error when two areas declare one type
 */
export function catalogue(sets: readonly AnyEventSet[]): EventCatalogue {
  const all = new Map<string, EventDeclaration>();
  for (const { declared } of sets) {
    for (const [type, declaration] of Object.entries(declared)) {
      if (all.has(type)) throw new Error(`the event type ${type} is declared twice`);
      all.set(type, declaration);
    }
  }
  return all;
}

/** Event that does not match its declaration: a defect of the deciding program, never stored. */
export class EventSchemaError extends Error {
  constructor(type: string, why: string) {
    super(`${type}: ${why}`);
    this.name = 'NotAsDeclared';
  }
}

/**
 * Holds new data against its declaration.
 * @throws EventSchemaError when the type is not declared or the data do not fit; names members, never values
 */
export function assertDeclared(all: EventCatalogue, type: string, data: JsonObject): void {
  const declaration = all.get(type);
  if (declaration === undefined) throw new EventSchemaError(type, 'no area declares this type');
  const { error } = declaration.schema.safeParse(data);
  if (error === undefined) return;
  const wrong = error.issues.map(({ path, code }) => `${path.join('.') || 'the event'} (${code})`);
  throw new EventSchemaError(type, `does not fit its declaration: ${wrong.join(', ')}`);
}
