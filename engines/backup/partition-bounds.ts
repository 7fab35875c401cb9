import { escapeLiteral } from 'pg';
import { ident } from '../../kernel/sql';

/** Constant in the form of `pg_get_expr`: `'…'` with doubled quotes inside, or a number. */
const VALUE = String.raw`'(?:[^'\\]|'')*'|-?\d+(?:\.\d+)?`;
const LIST = String.raw`\((${VALUE}|MINVALUE|MAXVALUE|NULL)((?:, (?:${VALUE}|MINVALUE|MAXVALUE|NULL))*)\)`;
const FOR_VALUES_IN = new RegExp(`^FOR VALUES IN ${LIST}$`);
const FOR_VALUES_FROM_TO = new RegExp(`^FOR VALUES FROM ${LIST} TO ${LIST}$`);
const HASH = /^FOR VALUES WITH \(modulus (\d+), remainder (\d+)\)$/;
const PART_KEY = /^(RANGE|LIST|HASH) \(((?:[a-z_][a-z0-9_]*)(?:, [a-z_][a-z0-9_]*)*)\)$/;

/**
 * SQL of a partition's bound, parsed from `text` (in the form of `pg_get_expr`) and rebuilt from its values, so that
 * nothing else in the text reaches SQL.
 * @throws Error when the text is not a bound of constants
 */
export function partitionBound(text: string): string {
  if (text === 'DEFAULT') return 'default';
  const inside = FOR_VALUES_IN.exec(text);
  if (inside) return `for values in (${values(inside[1]!, inside[2]!, ['NULL'])})`;
  const range = FOR_VALUES_FROM_TO.exec(text);
  if (range) {
    const [from, to] = [values(range[1]!, range[2]!, ENDS), values(range[3]!, range[4]!, ENDS)];
    return `for values from (${from}) to (${to})`;
  }
  const hash = HASH.exec(text);
  if (hash) return `for values with (modulus ${Number(hash[1])}, remainder ${Number(hash[2])})`;
  throw new Error(`not a bound of a partition: ${text.slice(0, 100)}`);
}

/**
 * SQL of a partition's own partition key, parsed and rebuilt likewise.
 * @throws Error unless the text is a strategy over some of `columns`
 */
export function partitionKey(text: string, columns: readonly string[]): string {
  const parts = PART_KEY.exec(text);
  const names = parts?.[2]!.split(', ') ?? [];
  if (!parts || !names.every((name) => columns.includes(name))) {
    throw new Error(`not the key of a partitioned table: ${text.slice(0, 100)}`);
  }
  return `${parts[1]!.toLowerCase()} (${names.map(ident).join(', ')})`;
}

const ENDS = ['MINVALUE', 'MAXVALUE'];

function values(first: string, others: string, words: readonly string[]): string {
  const all = [first, ...[...others.matchAll(new RegExp(`, (${VALUE}|[A-Z]+)`, 'g'))].map((match) => match[1]!)];
  return all
    .map((text) => {
      if (/^[A-Z]+$/.test(text)) {
        if (words.includes(text)) return text.toLowerCase();
        throw new Error(`not a value of such a bound: ${text}`);
      }
      return text.startsWith("'") ? escapeLiteral(text.slice(1, -1).replaceAll("''", "'")) : String(Number(text));
    })
    .join(', ');
}
