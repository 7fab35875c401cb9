import { objectsOfList } from './objects';

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/gs;
/** Length of the window that is searched: the digits with the blanks before them. */
const LONGEST = 136;

/**
 * The digits of the whole number at a path of members, as the JSON text has them: `JSON.parse` rounds a number beyond
 * 2^53. Undefined when there is none.
 */
export function digitsAt(json: string, path: readonly string[]): string | undefined {
  const value_at = offsetOf(json, path);
  if (value_at === undefined) return undefined;
  return /^\s*(-?\d+)(?![\d.eE])/.exec(json.slice(value_at, value_at + LONGEST))?.[1];
}

/** The objects in the list at a path of members, each as the JSON text has it; none where there is no list. */
export function objectsAt(json: string, path: readonly string[]): string[] {
  const value_at = offsetOf(json, path);
  if (value_at === undefined) return [];
  return /^\s*\[/.test(json.slice(value_at, value_at + LONGEST)) ? objectsOfList(json, value_at) : [];
}

function offsetOf(json: string, path: readonly string[]): number | undefined {
  let value_at = 0;
  for (const name of path) {
    const found = memberValueAt(json, value_at, name);
    if (found === undefined) return undefined;
    value_at = found;
  }
  return value_at;
}

/**
 * Where the value of a member begins, of the object that begins at or after `from`. Of members of one name the last
 * counts, as in `JSON.parse`.
 */
function memberValueAt(json: string, from: number, name: string): number | undefined {
  const token = new RegExp(TOKEN);
  token.lastIndex = from;
  /** How many brackets are open: the object's own members stand at 1. */
  let depth = 0;
  /** Whether the next string at depth 1 is a member's name. */
  let name_follows = false;
  let last_name: string | undefined;
  let found: number | undefined;
  for (let match = token.exec(json); match; match = token.exec(json)) {
    const [text] = match;
    if (text === '{' || text === '[') {
      depth += 1;
      name_follows = depth === 1 && text === '{';
    } else if (text === '}' || text === ']') {
      depth -= 1;
      if (depth <= 0) return found;
    } else if (depth === 1) {
      if (text === ',') name_follows = true;
      else if (text === ':') {
        if (last_name === name) found = token.lastIndex;
        name_follows = false;
      } else if (name_follows) last_name = JSON.parse(text) as string;
    }
  }
  return found;
}
