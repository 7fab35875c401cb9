/**
 * JSON text inside values that are serialised: a vendor's payload leaves as it came, byte for byte, so that numbers
 * beyond 2^53 and the order of members survive.
 *
 * `JSON.stringify` cannot write text as it is. So while {@link withRawJson} runs a serialiser, each {@link RawJson}
 * that it meets writes a placeholder, a string that nothing else can contain, and hands over its text; afterwards the
 * placeholders are replaced by the texts.
 */

/** Texts of the serialiser that runs now, by the number of their placeholder; null while none runs. */
let handed_over: string[] | null = null;
/** Characters of them that may still follow. */
let left = Infinity;
/** Of this process alone: no caller can send a placeholder. */
const mark = Math.random().toString(36).slice(2);
const BEGIN = `@raw-${mark}:`;
const placeholder = (number: number): string => `${BEGIN}${number}@`;
const PLACEHOLDERS = new RegExp(`"${BEGIN}(\\d+)@"`, 'g');

/** JSON text that is sent as it was received. Only {@link stringify} and {@link withRawJson} can serialise it. */
export class RawJson {
  constructor(readonly text: string) {}

  /** @throws Error when a serialiser meets it that would send the placeholder */
  toJSON(): string {
    if (handed_over === null) throw new Error('RawJson reached JSON.stringify outside withRawJson()');
    left -= this.text.length;
    if (left < 0) throw new RawJsonTooLong();
    const number = handed_over.push(this.text) - 1;
    return placeholder(number);
  }
}

/** The texts of one JSON have more characters than allowed. */
export class RawJsonTooLong extends Error {}

/**
 * Runs a synchronous serialiser, and gives its JSON with the text of every {@link RawJson} that it met.
 * @throws RawJsonTooLong as soon as their texts together have more than `longest` characters
 */
export function withRawJson(serialise: () => string, longest = Infinity): string {
  const outer = handed_over;
  const outer_left = left;
  const texts: string[] = (handed_over = []);
  left = longest;
  try {
    const json = serialise();
    return texts.length === 0 ? json : (filledInOrder(json, texts) ?? filled(json, texts));
  } finally {
    handed_over = outer;
    left = outer_left;
  }
}

/**
 * The usual case, at half the cost: each placeholder stands once, in the order in which they were handed over. Null for
 * any other.
 */
function filledInOrder(json: string, texts: readonly string[]): string | null {
  const begin = `"${BEGIN}`;
  let done = '';
  let from = 0;
  for (let number = 0; number < texts.length; number += 1) {
    const at = json.indexOf(begin, from);
    const end = `${number}@"`;
    if (at === -1 || !json.startsWith(end, at + begin.length)) return null;
    done += json.slice(from, at) + texts[number]!;
    from = at + begin.length + end.length;
  }
  return json.includes(begin, from) ? null : done + json.slice(from);
}

const filled = (json: string, texts: readonly string[]): string =>
  json.replace(PLACEHOLDERS, (_found, number: string) => texts[Number(number)]!);

/** `JSON.stringify` that understands {@link RawJson}. */
export function stringify(value: unknown): string {
  return withRawJson(() => JSON.stringify(value));
}
