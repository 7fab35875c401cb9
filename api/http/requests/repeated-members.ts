const [QUOTE, BACKSLASH, COLON] = [34, 92, 58];

/** First of these members that the object of a valid JSON text has twice; null without one. */
export function repeatedMember(json: string, names: ReadonlySet<string>): string | null {
  const seen = new Set<string>();
  let depth = 0;
  let string = '';
  for (let i = 0; i < json.length; i += 1) {
    const c = json.charCodeAt(i);
    if (c === QUOTE) {
      const end = endOfString(json, i);
      if (depth === 1) string = json.slice(i, end + 1);
      i = end;
    } else if (c === 91 || c === 123) depth += 1;
    else if (c === 93 || c === 125) depth -= 1;
    else if (c === COLON && depth === 1) {
      const name = JSON.parse(string) as string;
      if (seen.has(name)) return name;
      if (names.has(name)) seen.add(name);
    }
  }
  return null;
}

/** Index of the closing quote of the string that starts at `start`. */
function endOfString(json: string, start: number): number {
  let end = start;
  let backslashes: number;
  do {
    end = json.indexOf('"', end + 1);
    backslashes = 0;
    while (json.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
  } while (backslashes % 2 === 1);
  return end;
}
