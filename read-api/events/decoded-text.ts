/**
 * JSON text with each escaped backslash as U+0001, a character that JSON text never has unescaped. Every backslash that
 * remains begins an escape.
 */
export const unpaired = (json_text: string): string => String.raw`replace(${json_text}, '\\', chr(1))`;

/** Characters of a pattern that PostgreSQL tests before the whole one: its cost grows with the length of a pattern. */
const FIRST_CHARS = 32;

/**
 * Regular expressions of PostgreSQL that match {@link unpaired} JSON text when its decoded texts contain `search`,
 * whatever escapes spell it, and without regard to case. All of them must match; the cheaper one is first.
 */
export function decodedPatterns(search: string): string[] {
  const chars = [...search];
  const pattern = (some: readonly string[]) => some.map(charPattern).join('');
  return chars.length > FIRST_CHARS ? [pattern(chars.slice(0, FIRST_CHARS)), pattern(chars)] : [pattern(chars)];
}

function charPattern(char: string): string {
  const spellings = casesOf(char).flatMap((one) => [...literals(one), escape(one)]);
  return `(?:${spellings.join('|')})`;
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '/': '/',
  '\b': 'b',
  '\f': 'f',
  '\n': 'n',
  '\r': 'r',
  '\t': 't',
};

/** The spellings of a character besides `\uXXXX`. */
function literals(char: string): string[] {
  if (char === '\\') return [String.raw`\u0001`];
  const short = SHORT_ESCAPES[char];
  const spellings = short === undefined ? [] : [`${BACKSLASH}${quoted(short)}`];
  return isAlwaysEscaped(char) ? spellings : [quoted(char), ...spellings];
}

/** Control characters except the white space between members, and half of a surrogate pair. */
function isAlwaysEscaped(char: string): boolean {
  const point = char.codePointAt(0)!;
  return (point < 0x20 && !'\t\n\r'.includes(char)) || (point >= 0xd800 && point < 0xe000);
}

const BACKSLASH = String.raw`\\`;
const quoted = (char: string): string => (/[\w\u0080-\u{10ffff}]/u.test(char) ? char : `\\${char}`);

/** `\uXXXX` with hexadecimal digits of either case, once for each UTF-16 unit. */
const escape = (char: string): string =>
  [...Array(char.length).keys()]
    .map((n) => char.charCodeAt(n).toString(16).padStart(4, '0'))
    .map((hex) => `${BACKSLASH}u${hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)}`)
    .join('');

/** Past the last letter that has two cases. */
const LETTERS_END = 0x1e944;
let cases: Map<string, string[]> | undefined;

/** A character in all its cases: σ, ς and Σ are one letter. */
function casesOf(char: string): readonly string[] {
  cases ??= casedLetters();
  return cases.get(folded(char)) ?? [char];
}

function casedLetters(): Map<string, string[]> {
  const letters = new Map<string, string[]>();
  for (let point = 0; point < LETTERS_END; point += 1) {
    const char = String.fromCodePoint(point);
    if (char.toLowerCase() === char && char.toUpperCase() === char) continue;
    const key = folded(char);
    letters.set(key, [...(letters.get(key) ?? []), char]);
  }
  return letters;
}

/** Equal for the cases of one letter. A case of several characters (`SS` of ß) is left out, but İ is an i. */
function folded(char: string): string {
  const [lower] = char.toLowerCase();
  const upper = [...lower!.toUpperCase()];
  return upper.length === 1 ? upper[0]! : lower!;
}
