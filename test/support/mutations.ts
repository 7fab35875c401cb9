import fc from 'fast-check';

/** Where a new value is put while the JSON is made, since a text can say more than a value. */
const PLACE = '"\u2042 here \u2042"';

/** JSON texts that a reader does not expect. */
const STRANGE = [
  ...['null', 'true', '0', '-1', '-0', '1e308', '1e400', '1.5', '9007199254740993', '9'.repeat(400)],
  ...['""', '" "', String.raw`"\u0000"`, String.raw`"\ud800"`, String.raw`"a\udc00b"`, '"0"', '"NaN"', '"-1"', '"1e9"'],
  ...['"0001-01-01T00:00:00Z"', '"9999-12-31T23:59:59-18:00"', '"2026-02-30T00:00:00Z"', '"99999999999999999"'],
  ...['[]', '[[]]', '[null,1,"",{}]', '{}', '{"toString":"","valueOf":""}', '{"toJSON":1,"length":1e9}'],
  ...['{"__proto__":{"id":"1"},"constructor":{},"id":{"toString":null}}', '"__proto__"', '"constructor"'],
  ...[`"${'x'.repeat(3_000)}"`, `"${'\u{1f389}'.repeat(300)}"`, `"${'@a www.b.c https://d '.repeat(40)}"`],
  ...['['.repeat(150) + ']'.repeat(150), '['.repeat(250) + ']'.repeat(250)],
  JSON.stringify(Array.from({ length: 300 }, (_, n) => ({ user_id: n, id: String(n) }))),
];

/** A value that a member could have as well, as JSON text. */
export const strangeJson = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...STRANGE) },
  fc.json({ maxDepth: 3 }),
  fc.string({ unit: 'binary', maxLength: 30 }).map((text) => JSON.stringify(text)),
  fc.double().map((number) => (Number.isFinite(number) ? String(number) : '1e999')),
);

type Path = readonly (string | number)[];

/** The paths of all members and elements, however deep. */
export function pathsOf(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [at];
  const below = Object.entries(value).map(([name, one]) => pathsOf(one, [...at, Array.isArray(value) ? +name : name]));
  return [at, ...below.flat()];
}

/** The JSON text with the value at the path replaced by another text. */
export function replaced(text: string, path: Path, by: string): string {
  const holder = { root: JSON.parse(text) as unknown };
  let at = holder as Record<string | number, unknown>;
  let last: string | number = 'root';
  for (const name of path) {
    at = at[last] as Record<string | number, unknown>;
    last = name;
  }
  at[last] = JSON.parse(PLACE);
  return JSON.stringify(holder.root).replace(PLACE, () => by);
}
