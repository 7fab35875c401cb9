const QUOTE = 34;
const BACKSLASH = 92;
const COLON = 58;
const COMMA = 44;
const OPEN = 123;
const CLOSE = 125;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;

/**
 * The text of the value at a path of members, byte for byte: what `JSON.parse` would change (digits beyond 2^53, the
 * order of members) stays. Of members of one name the last counts, as in `JSON.parse`. Undefined when there is none.
 * For text that parses; linear in its length.
 */
export function memberText(json: string, path: readonly string[]): string | undefined {
  const found: Span = { from: 0, to: json.length };
  if (path.length > 0) objectEnd(json, blanksAfter(json, 0), path, 0, found);
  return found.from === NOWHERE ? undefined : json.slice(found.from, found.to);
}

interface Span {
  /** {@link NOWHERE} without a value. */
  from: number;
  to: number;
}
const NOWHERE = -1;

/**
 * Behind the value that begins at `at`. On the way, so that nothing is read twice, `found` becomes where the value at
 * `path` from `depth` on lies in it.
 */
function objectEnd(json: string, at: number, path: readonly string[], depth: number, found: Span): number {
  found.from = NOWHERE;
  if (json.charCodeAt(at) !== OPEN) return valueEnd(json, at);
  const name = path[depth]!;
  const is_last = depth === path.length - 1;
  let index = blanksAfter(json, at + 1);
  while (index < json.length && json.charCodeAt(index) === QUOTE) {
    const name_end = stringEnd(json, index);
    const same = isName(json, index, name_end, name);
    index = blanksAfter(json, name_end);
    if (json.charCodeAt(index) !== COLON) return json.length;
    const from = blanksAfter(json, index + 1);
    const to = same && !is_last ? objectEnd(json, from, path, depth + 1, found) : valueEnd(json, from);
    if (same && is_last) {
      found.from = from;
      found.to = to;
    }
    index = blanksAfter(json, to);
    if (json.charCodeAt(index) !== COMMA) break;
    index = blanksAfter(json, index + 1);
  }
  return index + 1;
}

/** Whether the quoted name from `from` to `to` is this one; an escaped one is looked at as it reads. */
function isName(json: string, from: number, to: number, name: string): boolean {
  if (to - from - 2 === name.length) return json.startsWith(name, from + 1);
  const written = json.slice(from, to);
  return written.includes('\\') && JSON.parse(written) === name;
}

function blanksAfter(json: string, at: number): number {
  let index = at;
  while (json.charCodeAt(index) <= 32) index += 1;
  return index;
}

/** Behind the string whose opening quote stands at `at`. */
function stringEnd(json: string, at: number): number {
  for (let end = json.indexOf('"', at + 1); end >= 0; end = json.indexOf('"', end + 1)) {
    let before = end - 1;
    while (json.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 1) return end + 1;
  }
  return json.length;
}

/** Behind the value that begins at `at`. */
function valueEnd(json: string, at: number): number {
  let depth = 0;
  for (let index = at; index < json.length; index += 1) {
    const code = json.charCodeAt(index);
    if (code === QUOTE) {
      index = stringEnd(json, index) - 1;
      if (depth === 0) return index + 1;
    } else if (code === OPEN || code === OPEN_LIST) depth += 1;
    else if (code === CLOSE || code === CLOSE_LIST) {
      // Of what the value is a member of.
      if (depth === 0) return endOfWord(json, index);
      depth -= 1;
      if (depth === 0) return index + 1;
    } else if (depth === 0 && code === COMMA) return endOfWord(json, index);
  }
  return json.length;
}

/** A number or word ends before the blanks behind it. */
function endOfWord(json: string, at: number): number {
  let end = at;
  while (json.charCodeAt(end - 1) <= 32) end -= 1;
  return end;
}
