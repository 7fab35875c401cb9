/** U+0000 does not exist in PostgreSQL's text; it becomes U+FFFD. */
export const withoutNul = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text);

const UNHOLDABLE = /\\u(?:0000|d[89a-f])/i;

/** A value parsed from `json`, in which texts that PostgreSQL's JSON functions refuse hold U+FFFD instead. */
export function holdable<T>(value: T, json: string): T {
  if (!UNHOLDABLE.test(json)) return value;
  const clean = (_name: string, one: unknown) => (typeof one === 'string' ? withoutNul(one.toWellFormed()) : one);
  return JSON.parse(JSON.stringify(value, clean)) as T;
}
