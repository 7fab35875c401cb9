/**
 * Most levels of JSON that comes from outside: JSON.stringify and PostgreSQL's jsonb recurse, and no vendor comes near
 * it.
 */
export const MAX_DEPTH = 200;

/** Whether JSON text is nested deeper than that. Linear, and without recursion itself. */
export function isTooDeep(text: string): boolean {
  // Brackets inside strings count here, which only sends the text on to the exact look.
  return budgetAfter(text, '{', budgetAfter(text, '[', MAX_DEPTH)) < 0 && nestsTooDeep(text);
}

/** Rest of `budget` after the occurrences of `mark`; negative as soon as there are more. */
function budgetAfter(text: string, mark: string, budget: number): number {
  let left = budget;
  for (let at = text.indexOf(mark); at >= 0 && left >= 0; at = text.indexOf(mark, at + 1)) left -= 1;
  return left;
}

function nestsTooDeep(text: string): boolean {
  let depth = 0;
  let in_string = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (in_string) {
      if (code === 92) index += 1;
      else if (code === 34) in_string = false;
    } else if (code === 34) in_string = true;
    else if (code === 91 || code === 123) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (code === 93 || code === 125) depth -= 1;
  }
  return false;
}
