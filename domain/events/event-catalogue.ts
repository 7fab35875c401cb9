import type { Json } from '../../lib/json/json';
import { KICK } from './types/kick';
import { CHATS, TRANSIENT } from './types/live';
import { DISCORD, SHOPIFY, STREAMELEMENTS, TROVO } from './types/others';
import { SPOTIFY } from './types/spotify';
import { TWITCH } from './types/twitch';
import { AT, type EventType } from './types/type';
import { YOUTUBE } from './types/youtube';

/**
 * Every type of events that this build knows, with what its `raw` looks like. The log takes other types too, up to 100
 * characters: whoever emits them says what they mean. Source: spec doc3 §6.2.
 */
export const EVENT_TYPES: readonly EventType[] = [
  ...TWITCH,
  ...YOUTUBE,
  ...KICK,
  ...TROVO,
  ...SPOTIFY,
  ...STREAMELEMENTS,
  ...DISCORD,
  ...SHOPIFY,
  ...CHATS,
  ...TRANSIENT,
];

const BY_TYPE: ReadonlyMap<string, EventType> = new Map(EVENT_TYPES.map((one) => [one.type, one]));

/**
 * A lifelike payload of a type, as JSON text, as if it happened now; null for a type that is not in the catalogue.
 * @param now Unix milliseconds
 */
export function exampleText(type: string, now: number): string | null {
  const known = BY_TYPE.get(type);
  if (known === undefined) return null;
  const moved = now - Date.parse(AT);
  return JSON.stringify(known.example, (_name, value: unknown) => {
    if (value === AT_SECONDS) return Math.floor(now / 1000);
    const instant = typeof value === 'string' && INSTANT.test(value);
    return instant ? new Date(Date.parse(value) + moved).toISOString() : value;
  });
}

/** {@link AT} as Trovo writes times. */
const AT_SECONDS = Date.parse(AT) / 1000;

/** Times of examples, as {@link AT} and `after` write them. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** JSON Schema of the `raw` of a type. Vendors add members: others than these may be there. */
export function shapeOf(one: EventType): Json {
  return shape(one.example, '', {
    optional: new Set(one.optional),
    nullable: new Set(one.nullable),
    digits: new Set(one.digits),
  });
}

type Paths = Readonly<Record<'optional' | 'nullable' | 'digits', ReadonlySet<string>>>;

function shape(value: Json, path: string, paths: Paths): Json {
  // Null in the example: what else it may be is not told by it.
  if (value === null) return {};
  const own = paths.digits.has(path) ? ['number', 'string'] : [typeOf(value)];
  const types = paths.nullable.has(path) ? [...own, 'null'] : own;
  const type = types.length === 1 ? types[0]! : types;
  if (Array.isArray(value)) {
    const [first] = value;
    return first === undefined ? { type } : { type, items: shape(first, `${path}[]`, paths) };
  }
  if (typeof value !== 'object') return { type };
  const below = (name: string) => (path === '' ? name : `${path}.${name}`);
  const names = Object.keys(value);
  const required = names.filter((name) => !paths.optional.has(below(name)));
  return {
    type,
    properties: Object.fromEntries(names.map((name) => [name, shape(value[name]!, below(name), paths)])),
    ...(required.length > 0 && { required }),
  };
}

function typeOf(value: NonNullable<Json>): string {
  if (Array.isArray(value)) return 'array';
  return typeof value;
}
