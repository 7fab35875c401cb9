/** SQL text that was written in a source file: values never become part of it. */
export class Sql {
  constructor(readonly text: string) {}
}

/** A statement, or a part of one: only other {@link Sql} may stand inside. */
export function sql(text: TemplateStringsArray, ...parts: readonly Sql[]): Sql {
  return new Sql(String.raw({ raw: text }, ...parts.map((part) => part.text)));
}

/** `statement` with the named query in front of its own, so that it can select from it. */
export function withQuery(name: string, query: string, statement: Sql): string {
  const text = statement.text.trim();
  const further = /^with\s+/i.exec(text);
  const queries = `with ${name} as (${query})`;
  return further === null ? `${queries}\n${text}` : `${queries},\n${text.slice(further[0].length)}`;
}

/** A name as SQL reads it, whatever is in it. */
export const ident = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** A text as a LIKE pattern that matches it alone. */
export const literal = (text: string): string => text.replace(/[\\%_]/g, '\\$&');

/** Collects the values of a statement, and numbers them `$1` and on. */
export class Parameters {
  readonly values: unknown[] = [];
  add(value: unknown): string {
    return `$${this.values.push(value)}`;
  }
}
