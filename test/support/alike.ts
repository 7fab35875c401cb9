import type { Operation } from '../../app/operation';
import type { Answered } from './asking';

/** How a caller is refused. Source: spec rulings, "guard messages". */
export type Refusal = readonly [code: string, message: string];

/** Null for an answer that is no refusal. */
export const refused = ({ status, text }: Answered, protocol: 'REST' | 'GraphQL'): Refusal | null => {
  if (protocol === 'REST' && status < 400) return null;
  const body = JSON.parse(text);
  if (protocol === 'REST') return [body.error, body.message];
  return body.errors ? [body.errors[0].extensions?.code, body.errors[0].message] : null;
};

const camel = (name: string) => name.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase());

/** A value with its members in one order and case, without those that are null. */
function plain(value: unknown, renamed: Readonly<Record<string, string>> = {}): unknown {
  if (Array.isArray(value)) return value.map((one) => plain(one, renamed));
  if (typeof value === 'string') return value.toLowerCase();
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .filter(([, one]) => one !== null)
    .map(([name, one]) => [camel(renamed[name] ?? name), plain(one, renamed)] as const);
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** GraphQL calls the type of an event so. Source: spec doc2 §4.3. */
const RENAMED = { eventType: 'type', event_type: 'type' };

/** GraphQL shows a new key beside its record, REST among the record's members. Source: spec doc2 §2.5. */
export function flattened(value: unknown): unknown {
  const members = Object.entries(value as object);
  const records = members.filter(([, one]) => typeof one === 'object' && one !== null);
  if (records.length !== 1) return value;
  const [[name, record]] = records as [[string, object]];
  return plain({ ...record, ...Object.fromEntries(members.filter(([other]) => other !== name)) });
}

/** What is shown, without the envelope; null for a refusal. */
export function restBody({ status, text }: Answered): unknown {
  if (status >= 300) return null;
  // What is gone is told by the status alone.
  if (text === '') return { success: true };
  const body = JSON.parse(text);
  return plain(body.data ?? body.items ?? body, RENAMED);
}
export function graphqlBody({ name, graphql, pages }: Operation, { text }: Answered): unknown {
  const shown = JSON.parse(text).data?.[name] ?? null;
  if (shown === null) return null;
  return plain(pages !== undefined && !Array.isArray(shown) ? shown.items : shown, { ...RENAMED, ...graphql?.renamed });
}

/** The same members with values of the same kinds. */
export function sameForm(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === 0 || other.length === 0 || sameForm(one[0], other[0]);
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return typeof one === typeof other;
  const [names, others] = [Object.keys(one), Object.keys(other)];
  return (
    names.join() === others.join() && names.every((name) => sameForm((one as never)[name], (other as never)[name]))
  );
}
