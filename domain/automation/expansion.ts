/** Values of a template by name; an object has values of its own. */
export interface Values {
  readonly [name: string]: string | Values;
}

/** `{{name}}`, a dotted path, and `{{random:a,b}}`. */
export const TEMPLATE_PLACE = /\{\{(?:random:([^{}]*)|(\w+(?:\.\w+)*))\}\}/g;

/**
 * Replaces the places of a template. Values are not expanded again, and unknown names are empty.
 * @param pick returns one of the number of choices, from 0 on
 */
export function expand(template: string, values: Values, pick: (choices: number) => number): string {
  return template.replace(TEMPLATE_PLACE, (_place, choices: string | undefined, path: string | undefined) => {
    if (choices === undefined) return valueAt(values, path!.split('.'));
    const all = choices.split(',').map((choice) => choice.trim());
    return all[pick(all.length)]!;
  });
}

function valueAt(values: Values, path: readonly string[]): string {
  let value: string | Values = values;
  for (const name of path) {
    if (typeof value === 'string' || !Object.hasOwn(value, name)) return '';
    value = value[name]!;
  }
  return typeof value === 'string' ? value : '';
}

/** The text without what is beyond this number of characters (code points). */
export const cutTo = (text: string, characters: number): string => [...text].slice(0, characters).join('');

/** A command that somebody wrote: the first word without `!`, and the text after it. Null for another text. */
export function commandIn(text: string): { word: string; args: string } | null {
  const [, word, args] = /^\s*!(\S+)\s*([^]*)$/u.exec(text) ?? [];
  return word === undefined ? null : { word, args: args!.trimEnd() };
}

/** Values of the text after a command. */
export function argumentValues(args: string, user: string): { args: string; arg: Values; target: string } {
  const words = args.split(/\s+/u).filter((word) => word !== '');
  const [first] = words;
  const target = first?.replace(/^@/, '') || user;
  return { args, arg: Object.fromEntries(words.map((word, at) => [String(at + 1), word])), target };
}

/** Time on air in words: `2h 5m`, `5m 3s`. */
export function uptimeText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours}h ${minutes}m`;
  return minutes > 0 ? `${minutes}m ${seconds % 60}s` : `${seconds}s`;
}
