import type { Json } from './json';

/** The value of a JSON text; null of a malformed one. */
export function parsedJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}

/** Reads the value at a path of members. */
export function memberAt<Value = Json>(value: unknown, path: readonly string[]): Value | undefined {
  let at: unknown = value;
  for (const name of path) {
    if (typeof at !== 'object' || at === null || Array.isArray(at) || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at as Value;
}
