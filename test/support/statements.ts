/** A statement as the driver prepares it: on one connection a name stands for one text. */
export interface NamedStatement {
  name: string;
  text: string;
}

/**
 * The calls of `query` in a source that give their statement a name. A text that stands in a constant of the source is
 * that constant's; another variable's is known by the file alone.
 */
export function namedStatements(source: string, file = ''): NamedStatement[] {
  const found: NamedStatement[] = [];
  for (const call of source.matchAll(/\.query(?:<[^()]*?>)?\(/g)) {
    const args = argumentsFrom(source, call.index + call[0].length);
    const name = /^['`](.+)['`]$/s.exec(args[2] ?? '')?.[1];
    if (name !== undefined) found.push({ name, text: textOf(args[0]!, source, file) });
  }
  return found;
}

function textOf(argument: string, source: string, file: string): string {
  const text = (written: string) => written.replace(/\s+/g, ' ').trim();
  if (!/^[\w$]+$/.test(argument)) return text(argument);
  const constant = new RegExp(`\\bconst ${argument.replaceAll('$', '\\$')}(?::[^=]+)? =\\s+(['\`][^;]*);`).exec(
    source,
  )?.[1];
  const imported = new RegExp(`\\bimport [^;]*\\b${argument.replaceAll('$', '\\$')}\\b[^;]* from`).test(source);
  return constant !== undefined ? text(constant) : imported ? argument : `${file}: ${argument}`;
}

/** The arguments of a call, as they are written from behind its bracket on. */
function argumentsFrom(source: string, start: number): string[] {
  const args: string[] = [];
  let [from, depth, quote] = [start, 1, ''];
  for (let at = start; depth > 0 && at < source.length; at += 1) {
    const sign = source[at]!;
    if (quote !== '') {
      if (sign === '\\') at += 1;
      else if (sign === quote) quote = '';
      continue;
    }
    if ('\'"`'.includes(sign)) quote = sign;
    else if ('([{'.includes(sign)) depth += 1;
    else if (')]}'.includes(sign)) depth -= 1;
    if (depth === 0 || (depth === 1 && sign === ',')) {
      const argument = source.slice(from, at).trim();
      if (argument !== '') args.push(argument);
      from = at + 1;
    }
  }
  return args;
}
