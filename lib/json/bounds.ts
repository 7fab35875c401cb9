const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;

export interface JsonBounds {
  /** Deepest nesting of arrays and objects. */
  depth: number;
  /** Members and elements of all objects and arrays together. */
  members: number;
}

/**
 * Whether a JSON text stays within bounds, in one linear pass that ends at the first excess and builds nothing. Text
 * that is not JSON may pass: a parser refuses it.
 */
export function isWithinJsonBounds(text: string, { depth: deepest, members: most }: JsonBounds): boolean {
  let depth = 0;
  let members = 1;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      at = endOfString(text, at);
      if (at === -1) return true;
    } else if (unit === COMMA) {
      members += 1;
      if (members > most) return false;
    } else if (unit === 91 || unit === 123) {
      depth += 1;
      if (depth > deepest) return false;
    } else if (unit === 93 || unit === 125) depth -= 1;
  }
  return true;
}

/** Index of the quote that ends the string which begins at `start`; -1 when none does. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 1) return end;
  }
  return -1;
}
