/** Characters of a name. */
export const MAX_NAME = 100;

/** The beginning of a text, without half a character at its end. */
export function cut(text: string, length: number): string {
  const begun = text.slice(0, length);
  return begun.isWellFormed() ? begun : begun.slice(0, -1);
}

const COPY = ' (copy)';
/** Name of a copy of what has this name. */
export const copyName = (name: string): string => cut(name, MAX_NAME - COPY.length) + COPY;
